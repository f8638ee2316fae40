"""The screens of `browse`, on Textual.

Rules: what comes from the wire is printable text before it is drawn, and never read as markup.
"""
