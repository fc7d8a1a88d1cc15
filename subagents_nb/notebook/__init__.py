"""The notebook face: magics, views and cards. It only asks the rooms below and shows what they say."""
