"""Start Spark and build the column expressions that every report uses.

May import `errors`, `dissectors.histogram` and `dissectors.endpoint`; knows no report and no
input.
"""
