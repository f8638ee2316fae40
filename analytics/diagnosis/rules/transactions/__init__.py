"""Rules about half messages, check-backs, replies, timers and POP."""
