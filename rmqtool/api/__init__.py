"""The Python API for programs and notebooks, shared with the commands.

Nothing heavy is imported before it is used.
"""
