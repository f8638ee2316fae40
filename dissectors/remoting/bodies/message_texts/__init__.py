"""Write messages as JSON from their bytes, the fast path for nearly all.

Odd messages are left to the slow path.
"""
