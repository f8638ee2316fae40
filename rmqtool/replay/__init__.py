"""Implement `rmqtool replay`."""
