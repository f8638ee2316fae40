"""The letters of options: one meaning each in all commands.

Rules: where tshark or tcpdump have a letter for the same thing, it is that one; a letter that means
something else there is not used. An option without a line here has a long name only.
"""

from __future__ import annotations

from collections.abc import Mapping

LETTERS: Mapping[str, str] = {
    # of tshark and tcpdump
    "--limit": "-c",
    "--list-interfaces": "-D",
    "--decode-as": "-d",
    "--filter": "-f",
    "--interface": "-i",
    "--no-promiscuous": "-p",
    "--quiet": "-q",
    "--format": "-T",
    "--verbose": "-V",
    "--write": "-w",
    "--where": "-Y",
    # of mqadmin and kcat
    "--broker": "-b",
    "--group": "-g",
    "--keys": "-k",
    "--namesrv": "-n",
    "--topic": "-t",
    # of many programs
    "--help": "-h",
    "--jobs": "-j",
    "--mode": "-m",
    "--output": "-o",
    "--yes": "-y",
}
"""long name → letter"""


def named(name: str, *others: str) -> tuple[str, ...]:
    """Return how an option is spelled: its name, other names, and its letter if it has one."""
    letter = LETTERS.get(name)
    return (name, *others) if letter is None else (name, *others, letter)
