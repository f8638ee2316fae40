"""Implement `rmqtool replay`.

May import `ui`, `decode`, `send`, `version`, the package `replay` and `dissectors`.
"""
