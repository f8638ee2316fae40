"""Implement `rmqtool help`: the project's documents as help topics."""
