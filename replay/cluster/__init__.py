"""Know a cluster: routes of topics, masters of brokers, heartbeats, broken brokers.

May import `wire`, `fault`, the modules beside, `dissectors.remoting` and `dissectors.endpoint`.
"""
