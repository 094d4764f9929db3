"""The agents' door: an MCP server over the ledger."""
