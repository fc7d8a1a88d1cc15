"""What agents are given to know beside their tasks: the notes of a project, and skills."""
