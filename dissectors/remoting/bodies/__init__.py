"""Decode and encode bodies of commands: one entry per operation, by tables or its own decoder."""
