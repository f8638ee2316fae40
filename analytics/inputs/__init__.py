"""Read what a report is given: decoded logs, single files and captures, as DataFrames.

May import `spark`, the modules beside and `dissectors`; knows no report.
"""
