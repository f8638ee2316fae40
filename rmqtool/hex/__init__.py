"""Implement `rmqtool decode hex` and `rmqtool decode stream`."""
