"""Implement `rmqtool decode live`.

May import `api`, `ui`, `decode` and `dissectors`.
"""
