"""An MCP server: the stock of the shop."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("stock")


@server.tool()
def pieces(product: str) -> int:
    """Return how many pieces of a product lie in the stock."""
    return {"desk lamp": 12, "office chair": 3}.get(product, 0)


server.run("stdio")
