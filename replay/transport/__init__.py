"""The only sockets of the producer: a blocking and an asyncio driver of the same core."""
