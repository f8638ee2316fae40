"""Implement `rmqtool broker`."""
