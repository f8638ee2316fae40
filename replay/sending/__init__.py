"""Send messages as operations: requests, attempts, retries, transactions, replies, traces.

May import `cluster`, `wire`, `fault`, the modules beside, `dissectors.remoting` and
`dissectors.rows`.
"""
