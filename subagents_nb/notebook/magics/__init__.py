"""The magics: their lines read and completed, their cells carried out."""
