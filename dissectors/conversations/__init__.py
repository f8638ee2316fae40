"""Decode one TCP connection: its protocol, both directions, commands, and row."""
