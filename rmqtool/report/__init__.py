"""Implement `rmqtool report`.

May import `ui`, `version`, `analytics` and `dissectors`.
"""
