"""The sandbox of a step: what its processes see of this machine, and how they are started in it."""
