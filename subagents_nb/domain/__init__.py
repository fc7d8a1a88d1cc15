"""Values and decisions. Nothing here touches a clock, a file, a process or chance: they arrive as arguments."""
