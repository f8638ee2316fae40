"""Extract facts from headers and bodies: data for diagnosis without a column of its own.

A fact is `name=value`; `names` declares all names and their values, and each value format is
written and read side by side. Only requests and responses with relevant data get facts, so a plain
send costs nothing. Everything is bounded, and captured bytes never raise.
"""
