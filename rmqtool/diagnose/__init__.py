"""`diagnose`: what is wrong, why, and what to do about it.

May import `ui`, `decode` and `live` of this package, `analytics.diagnosis` and `analytics.inputs`."""
