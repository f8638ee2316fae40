"""Implement `rmqtool wireshark`.

May import `ui`, `version` and `dissectors`.
"""
