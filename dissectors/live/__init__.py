"""Read packets from a network interface.

Imports nothing else of the project; the only use of sockets in the package.
"""
