"""Read a copy of a broker's store, offline and read-only: messages, their queues, group offsets."""
