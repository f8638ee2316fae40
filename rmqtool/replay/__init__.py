"""Implement `rmqtool replay`.

May import `ui`, `decode`, `live`, `send`, `version`, the package `replay` and `dissectors`.
"""
