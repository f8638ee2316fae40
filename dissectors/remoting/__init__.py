"""Decode and encode the remoting protocol, sans-IO.

Imports nothing but what is in it; knows no TCP, no capture and no socket.
"""
