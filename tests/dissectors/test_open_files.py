"""Whether files are left is asked before, and leaves none open."""

from __future__ import annotations

import os
import resource

import pytest

from dissectors.open_files import require_files


def test_what_is_asked_for_is_not_kept() -> None:
    before = os.listdir("/proc/self/fd")
    require_files(20)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 4, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files") as found:
            require_files(2000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found.value.filename is None
    assert len(os.listdir("/proc/self/fd")) == len(before)
