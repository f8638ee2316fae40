"""Rules about topics, routes and permissions."""
