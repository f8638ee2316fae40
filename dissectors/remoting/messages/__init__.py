"""Decode and encode stored messages, batches, properties and compressed bodies.

May import `ids`, the modules beside, `budget` and `endpoint`.
"""
