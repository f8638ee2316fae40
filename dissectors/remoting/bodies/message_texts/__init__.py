"""Write messages as JSON from their bytes, which is the fast way of nearly all of them.

May import `remoting`, `json_bytes` and `plain_json`. What is odd is left to the slow way beside.
"""
