"""What people write of acceptance, read into the plan."""
