"""Implement `rmqtool decode live`."""
