"""Implement `rmqtool codes`.

May import `ui` and `dissectors.remoting`.
"""
