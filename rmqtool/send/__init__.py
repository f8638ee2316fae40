"""Implement `rmqtool send`."""
