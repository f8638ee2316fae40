"""Diagnose captured traffic: rules folded over rows in one pass, without I/O.

Spark is imported only by the reports and their tasks, which run the same folds.
"""
