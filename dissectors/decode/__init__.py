"""Decode pipeline: packets in; commands, exchanges, connections, and findings out."""
