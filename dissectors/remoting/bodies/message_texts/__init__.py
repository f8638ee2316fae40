"""Write messages as JSON from their bytes, which is the fast way of nearly all of them.

What is odd is left to `bodies.messages`. May import `remoting`, `json_bytes` and `plain_json`."""
