"""Decode captured bytes: packets, TCP, the remoting protocol, exchanges, rows.

Imports nothing of the other packages. Passive: opens no connection and raises nothing because of
what was captured.
"""
