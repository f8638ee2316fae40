"""Answer requests, one module per family of request codes.

May import `store` and the broker's state."""
