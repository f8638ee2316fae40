"""Turn captured exchanges into the messages that were sent, with their outcome."""
