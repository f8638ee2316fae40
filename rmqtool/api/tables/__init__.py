"""The tables of a capture: exchanges, commands, messages, connections, findings."""
