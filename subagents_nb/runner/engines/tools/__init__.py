"""The tools that an agent may have: files, search, shell; around each call its limits."""
