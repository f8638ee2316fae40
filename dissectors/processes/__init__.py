"""Decodes on several processes: starts them, gives each its share, puts together what they send.

May import `decode`, `rows`, `where`, `tcp` and `expert`."""
