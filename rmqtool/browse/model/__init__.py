"""What is browsed: rows in files without a name, filled while they are looked at.

May import `api`, `summary`, `ui`, `decode`, `trace.ladder_lines`, `dissectors` and, of analytics,
`analytics.diagnosis`, `analytics.inputs` and `analytics.life`; never Textual.
"""
