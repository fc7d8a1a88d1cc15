"""The store as a whole: clean-up, archives, examination of the installation."""
