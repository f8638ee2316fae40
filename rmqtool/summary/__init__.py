"""Build and print the summary of a decode run.

May import `ui`, `analytics.diagnosis` and `dissectors`.
"""
