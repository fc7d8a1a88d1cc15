"""The python tool: a kernel of the agent's own, started at its first call and gone with its step."""
