"""Read packets from a network interface.

The only use of sockets in `dissectors`; imports nothing else of the project."""
