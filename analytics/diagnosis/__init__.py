"""Say what is wrong, why, and what to do about it: rules folded over rows, one pass, no I/O.

May import the pure parts of `sends` and of `isolation`, `replay.fault` and `dissectors`. Spark is
imported only by the reports and their tasks, which run the same folds.
"""
