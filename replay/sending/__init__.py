"""Send messages as operations: requests, attempts, retries, transactions, replies, traces.

May import `cluster`, `wire`, `fault` and the values on top of `replay`."""
