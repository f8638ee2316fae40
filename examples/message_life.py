"""What happened to a message: python examples/message_life.py CAPTURE KEY"""

from __future__ import annotations

import sys

import rmqtool


def main(capture: str, key: str) -> None:
    """Print the steps of each message that has the key, and what cannot be seen."""
    for life in rmqtool.read(capture).trace(key):
        print(f"{life.name} of {life.topic}")
        for step in life.steps:
            print(f"  packet {step.row.packet}: {step.words}")
        for line in [*life.summary, *life.unseen]:
            print(f"  ({line})")


if __name__ == "__main__":
    main(*sys.argv[1:])
