"""Implement `rmqtool wireshark`."""
