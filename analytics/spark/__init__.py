"""Start Spark and build the column expressions that every report uses.

Knows no report and no input."""
