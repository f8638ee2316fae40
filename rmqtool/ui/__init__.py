"""Provide what all commands share: terminal, columns, output, progress, errors, common options.

May import `dissectors` values only; no command."""
