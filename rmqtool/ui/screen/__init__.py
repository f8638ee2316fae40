"""Draw bounded output on terminals, with rich: the only folder that hands text to it.

May import `ui`, and rich within functions: it takes time to load.
"""
