"""Attacks of captures and peers, each under a limit of memory, held against what it may cost."""
