"""Rewrite captures and rows for sharing: keyed, consistent, and of the same length."""
