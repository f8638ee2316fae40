"""HTTP/2 without I/O: frames of both ends, header blocks, what happens on streams."""
