"""Implement `rmqtool codes`."""
