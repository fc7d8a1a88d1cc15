"""MCP servers: how one is started or reached, what of its tools a step has, and what became of them since"""
