"""Implement `rmqtool proxy`."""
