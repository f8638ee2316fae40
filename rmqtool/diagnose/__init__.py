"""Implement `rmqtool diagnose`: what is wrong, why, and what to do about it.

May import `api`, `ui`, `decode`, `live`, `summary`, `analytics.diagnosis`, `analytics.inputs` and
`dissectors`.
"""
