"""Replay the fault strategy over captured attempts and judge whether clients followed it.

May import `sends`, `spark` and `replay.fault`."""
