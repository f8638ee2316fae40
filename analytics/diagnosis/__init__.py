"""Say what is wrong, why, and what to do about it: rules folded over rows, one pass, no I/O.

May import `sends`' pure stitching, `isolation`'s replay of the strategy, and `dissectors`. Spark
is imported only by `analytics.reports.diagnosis` and its tasks, which run the same folds."""
