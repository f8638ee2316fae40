"""Implement `rmqtool watch`: problems, metrics, and captures of incidents, for weeks."""
