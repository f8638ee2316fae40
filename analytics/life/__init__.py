"""Tell the life of single messages: what happened to them, in order, and what cannot be seen.

May import `dissectors`; pure: no Spark, no capture.
"""
