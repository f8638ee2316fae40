"""Implement `rmqtool send`.

May import `ui`, `decode`, the package `replay` and `dissectors`.
"""
