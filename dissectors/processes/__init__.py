"""Decode on several processes: start them, split the work, and merge the results."""
