"""Read captures and reassemble TCP streams.

May import `budget` and `expert`; knows no RocketMQ.
"""
