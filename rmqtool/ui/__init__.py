"""Shared parts of all commands: terminal, columns, output, progress, errors, common options."""
