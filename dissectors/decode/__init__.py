"""Joins capture, TCP and protocol: packets in; conversations, commands, exchanges and findings out.

May import every other folder of `dissectors` but `live` and `wireshark`."""
