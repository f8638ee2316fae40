"""Carry requests over connections without doing I/O: operations, connections, channels.

May import the modules beside and `dissectors`; no socket, no clock.
"""
