"""Implement `rmqtool decode pcap`: options, run, views, sinks.

May import `api`, `summary`, `ui`, `version`, `analytics.diagnosis` and `dissectors`.
"""
