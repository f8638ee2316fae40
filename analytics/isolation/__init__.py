"""Replay the fault strategy over captured attempts and judge whether clients followed it.

May import `sends`, `schema`, the contract in `report`, `replay.fault` and `dissectors.remoting`.
"""
