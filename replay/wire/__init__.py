"""Carry requests over connections without doing I/O: operations, connections, channels.

May import the values on top of `replay` and `dissectors`; no socket, no clock."""
