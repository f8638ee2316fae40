"""`browse`: a terminal UI for captures, decoded logs, and interfaces.

`model` has the data, without a terminal; `views` shows it, and only `views` imports Textual.
"""
