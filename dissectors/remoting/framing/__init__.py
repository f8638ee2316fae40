"""Find and cut frames in a byte stream.

May import the header codec and `expert`; knows no TCP."""
