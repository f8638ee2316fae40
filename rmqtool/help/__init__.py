"""Implement `rmqtool help`: the project's documents as help topics.

May import `ui`, `dissectors.rows` and `dissectors.where`.
"""
