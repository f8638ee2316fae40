"""The letters of options: one meaning each in all commands.

Rules: letters follow tshark and tcpdump for equal options, and letters with another meaning there
are not used. Options without an entry here have only a long name.
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
    """Return all names of an option, including its letter if any."""
    letter = LETTERS.get(name)
    return (name, *others) if letter is None else (name, *others, letter)
