"""Read captures by ranges and decode them by shares of their connections, each by another task.

May import `tcp`, `conversations`, `decode` and `expert`.
"""
