"""The producer's sockets: a blocking and an asyncio driver of the same core."""
