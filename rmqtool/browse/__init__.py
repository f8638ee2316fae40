"""`browse`: captures, decoded logs and interfaces in the terminal, looked at with keys and mouse.

`model` is what is shown, without a terminal; `views` shows it, and is all that imports Textual.
May import `api`, `ui`, `decode`, `live`, `analytics.inputs` and `dissectors`.
"""
