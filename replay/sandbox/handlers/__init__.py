"""Serve requests, one module per family of request codes."""
