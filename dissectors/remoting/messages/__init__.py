"""Decode and encode stored messages, batches, properties and compressed bodies.

May import `ids`, the facts of the protocol beside the folders and `dissectors.endpoint`."""
