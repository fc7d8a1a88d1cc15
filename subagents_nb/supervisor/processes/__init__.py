"""A process from outside: who it is, whether it lives, what it left; how to start a fresh one."""
