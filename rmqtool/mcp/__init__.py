"""`rmqtool mcp`: a read-only Model Context Protocol server over captures and decoded logs."""
