"""Carry out a plan: order, rate, journal, resume and comparison with the capture.

May import `replay` and `dissectors`.
"""
