"""Implement `rmqtool decode hex` and `rmqtool decode stream`.

May import `ui`, `decode` and `dissectors`.
"""
