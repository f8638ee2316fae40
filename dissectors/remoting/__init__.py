"""Decode and encode the remoting protocol, sans-IO.

Knows no TCP, no capture and no socket."""
