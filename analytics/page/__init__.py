"""Render report tables as one self-contained HTML page with charts."""
