"""Send messages as operations: requests, attempts, retries, transactions, replies, traces."""
