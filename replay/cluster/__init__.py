"""Track a cluster: topic routes, broker masters, heartbeats, failed brokers."""
