"""Read captures and reassemble TCP streams.

May import `expert`; knows no RocketMQ.
"""
