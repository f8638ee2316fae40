"""Keep what producers sent, as numbers, and judge by it what their fault strategy made of failures.

May import the modules of `diagnosis`, the pure parts of `sends` and of `isolation`, `replay.fault`
and `dissectors`; rules import it.
"""
