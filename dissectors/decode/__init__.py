"""Join capture, TCP and protocol: packets in; conversations, commands, exchanges and findings out.

May import `tcp`, `tls`, `remoting`, `replication`, `grpc`, `conversations`, `message_rows`,
`rows`, `where` and the modules beside.
"""
