"""Rules about connections, addresses and other protocols."""
