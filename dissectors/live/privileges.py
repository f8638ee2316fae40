"""Give up the rights that opening an interface needed: user, groups, capabilities; on Linux.

Rules: what was opened stays open, so this comes after it and before the first packet is looked at.
Nothing can be got back: the bounding set is emptied and `no_new_privs` set, as dumpcap does. Who
called sudo is who runs it from then on, so that files belong to whom one expects; root itself stays
root in name, without any capability.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ..foreign import natural_of
from .interface import LiveError

PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
CAPABILITY_VERSION_3: Final = 0x20080522
MOST_CAPABILITIES: Final = 64
"""capabilities that version 3 has room for"""
_STATUS: Final = Path("/proc/self/status")
_KEPT: Final = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


class Account(NamedTuple):
    """A user that a process can run as."""

    name: str
    uid: int
    gid: int


def account_of(name: str | None, environment: Mapping[str, str]) -> Account | None:
    """Return whom to run as: the user of that name, else the one who called sudo; None: no other.

    Only root can become somebody else. Raise LiveError where there is no such user.
    """
    if name is not None:
        return _named(name)
    if not is_root():
        return None
    if os.getuid() != 0:  # a program that is root's by its mode
        return _numbered(os.getuid(), os.getgid())
    uid, gid = (natural_of(environment.get(one, "")) for one in ("SUDO_UID", "SUDO_GID"))
    if not uid or gid is None or max(uid, gid) >= 1 << 32:
        return None
    return _numbered(uid, gid)


def is_root() -> bool:
    """Return whether this process may do anything, as root."""
    return sys.platform.startswith("linux") and os.geteuid() == 0


def give_up(account: Account | None) -> None:
    """Become that user, if any, and drop all capabilities for good.

    Raise LiveError where that fails, or where the user cannot read this program.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    needed = [path for path in sys.path if os.path.isdir(path)]
    bounded = os.geteuid() == 0
    try:
        for capability in range(MOST_CAPABILITIES):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
                break  # beyond the last one, or no right: then there is nothing to bound either
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
        if account is not None and (account.uid, account.gid) != (os.getuid(), os.getgid()):
            _become(account)
        _drop_capabilities(libc)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "no_new_privs")
    except OSError as error:
        raise LiveError("live capture", f"rights cannot be given up ({error})") from None
    left = _capabilities_left(_KEPT if bounded else _KEPT[:3])
    if left:
        raise LiveError("live capture", f"rights are still there: {', '.join(left)}")
    unread = [path for path in needed if not os.access(path, os.R_OK | os.X_OK)]
    if unread and account is not None:  # what is imported later would be missing
        raise LiveError(
            "live capture",
            f"{account.name} cannot read what this program is made of ({unread[0]})",
            "install it where all can read it, or give --user root",
        )


def _become(account: Account) -> None:
    if os.geteuid() == 0:
        os.initgroups(account.name, account.gid)
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    os.environ["HOME"] = _home_of(account)


def _home_of(account: Account) -> str:
    try:
        return pwd.getpwuid(account.uid).pw_dir
    except KeyError:
        return "/"


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Empty the effective, the permitted and the inheritable set."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


def _capabilities_left(names: tuple[str, ...]) -> list[str]:
    lines = (line.partition(":") for line in _STATUS.read_text().splitlines())
    return [name for name, _, value in lines if name in names and value.strip("\t 0")]


def _named(name: str) -> Account:
    try:
        found = pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise LiveError("live capture", f"there is no user {name!r}") from None
    return Account(found.pw_name, found.pw_uid, found.pw_gid)


def _numbered(uid: int, gid: int) -> Account:
    try:
        return Account(pwd.getpwuid(uid).pw_name, uid, gid)
    except KeyError:
        return Account(str(uid), uid, gid)
