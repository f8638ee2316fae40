"""Decode and encode stored messages, batches, properties and compressed bodies."""
