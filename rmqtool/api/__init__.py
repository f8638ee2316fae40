"""What programs and notebooks import as `rmqtool`, and what commands share with them.

May import `ui`, `summary`, the modules beside, `dissectors` and, of analytics,
`analytics.diagnosis`, `analytics.inputs` and `analytics.life`; knows no command. Nothing heavy is
imported before it is used.
"""
