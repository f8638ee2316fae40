"""The tables of a capture: exchanges, commands, messages, connections, findings.

May import `errors` and `dissectors`; each table is a module, imported when it is asked for.
"""
