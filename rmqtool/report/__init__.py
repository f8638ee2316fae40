"""Implement `rmqtool report`.

May import `ui`, `decode`, `version`, `analytics` and `dissectors`.
"""
