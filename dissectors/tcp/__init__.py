"""Read captures and reassemble TCP streams."""
