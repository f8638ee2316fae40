"""Describe injections (faults on demand) and apply them to requests."""
