"""Implement `rmqtool report`."""
