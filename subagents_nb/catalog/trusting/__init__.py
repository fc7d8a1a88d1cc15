"""What a project brings that can act with the person's rights, and whether they allowed it."""
