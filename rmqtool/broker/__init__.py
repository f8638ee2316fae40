"""Implement `rmqtool broker`.

May import `ui`, `replay.sandbox` and `dissectors`.
"""
