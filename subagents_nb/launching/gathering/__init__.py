"""What a launch looks up before it is planned: folders, git, prices, sessions, its lineage."""
