"""The screens of `browse`, on Textual.

May import `model`, `api`, `summary`, `ui`, `diagnose.text`, `dissectors`, `analytics.diagnosis`,
`replay.config`, `replay.errors` and `replay.safety`. What comes from the wire is printable text
before it is drawn, and never read as markup.
"""
