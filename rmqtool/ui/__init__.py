"""Provide what all commands share: terminal, columns, output, progress, errors, common options.

May import `errors`, `version` and values of `dissectors`; no command.
"""
