"""Find and cut frames in a byte stream."""
