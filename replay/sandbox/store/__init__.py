"""Store the sandbox's messages, topics and offsets, in memory and in a file."""
