"""Hold the only sockets of the producer: a blocking and an asyncio driver of the same core.

May import `wire`, the modules beside and `dissectors.endpoint`.
"""
