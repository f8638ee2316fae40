"""Store the sandbox's messages, topics and offsets, in memory and in a file.

May import `errors`, `groups`, `topics`, `dissectors.remoting` and `dissectors.temporary`.
"""
