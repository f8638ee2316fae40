"""Implement `rmqtool consume` and `rmqtool topic`: what a cluster has, read without a trace.

May import `ui`, `send`, `decode`, the package `replay` and `dissectors`.
"""
