"""Fails a build whose test traffic has problems: python examples/gate.py CAPTURE..."""

from __future__ import annotations

import sys

import rmqtool


def main(*captures: str) -> int:
    """Print problems of severity error; return 1 where there is one, 2 where nothing was read."""
    try:
        problems = rmqtool.read(captures).problems()
    except rmqtool.Error as error:
        print(error, file=sys.stderr)
        return 2
    errors = [one for one in problems if one.severity == "error"]
    for one in errors:
        print(f"{one.rule}: {one.title}\n  {one.advice}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
