"""Read what a report is given: decoded logs, single files and captures, as DataFrames.

May import `spark` and `dissectors`; knows no report."""
