"""Implement `rmqtool decode pcap`: options, run, views, sinks."""
