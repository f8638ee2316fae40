"""Turn captured exchanges into the messages that were sent, with their outcome.

May import `dissectors` and the values on top of `replay`."""
