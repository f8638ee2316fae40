"""Know a cluster: routes of topics, masters of brokers, heartbeats, broken brokers.

May import `wire`, `fault` and the values on top of `replay`."""
