"""MCP servers of a step: started when it begins, asked through the SDK's client, gone with it"""
