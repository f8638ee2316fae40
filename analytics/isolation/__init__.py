"""Replay the fault strategy over captured attempts and judge whether clients followed it."""
