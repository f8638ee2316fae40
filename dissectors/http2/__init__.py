"""Cut HTTP/2 into frames and streams, without I/O: both ends, and their header blocks.

Imports nothing else of the project.
"""
