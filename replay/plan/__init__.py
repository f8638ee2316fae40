"""Decide which captured messages are sent again, when, and changed how.

May import `captured`, `message` and `dissectors`; sends nothing.
"""
