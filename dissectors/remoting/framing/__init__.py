"""Find and cut frames in a byte stream.

May import `header_codec`, `row_bodies`, the facts of the protocol beside the folders and `expert`;
knows no TCP.
"""
