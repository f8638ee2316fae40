"""Implement `rmqtool trace`: the life of a message as a ladder diagram, JSON, a page or spans."""
