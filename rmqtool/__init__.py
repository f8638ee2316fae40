"""The command line of rmqtool: parses, calls the libraries, renders, exits."""

from __future__ import annotations

__version__ = "0.1.0"
