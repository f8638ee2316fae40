"""Implement `rmqtool broker`.

May import `ui`, `decode`, `replay.sandbox` and `dissectors`.
"""
