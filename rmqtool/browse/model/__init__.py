"""What is browsed: rows in files without a name, filled while they are looked at.

May import `api`, `summary`, `ui`, what other commands print, and the libraries; never Textual.
"""
