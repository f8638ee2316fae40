"""Runs one command and prints what it took, as JSON; a program of its own that imports next to
nothing.

Linux counts a parent's memory in the largest resident set of a child until the child has become
another program, so the parent of a measured process has to be small. Started by `measure.py`:
`python -I -S spawn.py STDOUT STDERR COMMAND...`
"""

from __future__ import annotations

import os
import sys
import time


def busy_seconds() -> float:
    """Return the CPU seconds that all processes have used since the machine started, 0 if unknown.

    The fields of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
    """
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(number) for number in file.readline().split()[1:9]]
    except OSError:
        return 0.0
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Spawn, wait, print."""
    output, errors, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 1, output, flags, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, errors, flags, 0o644),
    ]
    busy = busy_seconds()
    start = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    others = max(0.0, (busy_seconds() - busy - cpu) / wall)
    rss = usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    code = os.waitstatus_to_exitcode(status)
    print(
        f'{{"wall": {wall:.6f}, "cpu": {cpu:.6f}, "rss": {rss:.2f}, '
        f'"others": {others:.3f}, "exit": {code}}}'
    )


if __name__ == "__main__":
    main()
