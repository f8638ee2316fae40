"""gRPC calls of RocketMQ's clients without I/O: messages, their tables, their columns."""
