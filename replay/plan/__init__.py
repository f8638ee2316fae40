"""Decide which captured messages are sent again, when, and changed how.

May import `captured` and the values on top of `replay`; sends nothing."""
