"""Drop the privileges for opening an interface: user, groups, capabilities; on Linux.

Open sockets stay open, so privileges are dropped after opening and before the first packet is
parsed. They cannot be regained. After sudo, the process runs as the calling user, who then owns its
files; root stays root in name, without capabilities.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import sys
from collections.abc import Iterable, Mapping
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
"""capabilities of version 3"""
_STATUS: Final = Path("/proc/self/status")
_KEPT: Final = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


class Account(NamedTuple):
    """A user that the process can run as."""

    name: str
    uid: int
    gid: int


def account_of(name: str | None, environment: Mapping[str, str]) -> Account | None:
    """Return the user to run as: the named one, or the caller of sudo, or None for no change.

    Only root can change users. Raise LiveError if the user does not exist.
    """
    if name is not None:
        return _named(name)
    if not is_root():
        return None
    if os.getuid() != 0:  # set-user-ID root
        return _numbered(os.getuid(), os.getgid())
    uid, gid = (natural_of(environment.get(key, "")) for key in ("SUDO_UID", "SUDO_GID"))
    if not uid or gid is None or max(uid, gid) >= 1 << 32:
        return None
    return _numbered(uid, gid)


def is_root() -> bool:
    """Return whether this process runs as root."""
    return sys.platform.startswith("linux") and os.geteuid() == 0


def give_up(account: Account | None) -> None:
    """Switch to a user, if any, and drop all capabilities permanently.

    Raise LiveError if that fails, or if the user cannot read this program.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    needed = [path for path in sys.path if os.path.isdir(path)]
    bounded = os.geteuid() == 0
    try:
        _drop_bounding(libc, 0)  # first: it needs a capability itself
        if account is not None and (account.uid, account.gid) != (os.getuid(), os.getgid()):
            _become(account)
        _set_capabilities(libc, (0, 0, 0, 0, 0, 0))
    except OSError as error:
        raise LiveError("live capture", f"rights cannot be given up ({error})") from None
    left = _capabilities_left(_KEPT if bounded else _KEPT[:3])
    if left:
        raise LiveError("live capture", f"rights are still there: {', '.join(left)}")
    unread = [path for path in needed if not os.access(path, os.R_OK | os.X_OK)]
    if unread and account is not None:  # later imports would fail
        raise LiveError(
            "live capture",
            f"{account.name} cannot read what this program is made of ({unread[0]})",
            "install it where all can read it, or give --user root",
        )


def _become(account: Account) -> None:
    # Groups first, which only root may change; and all three ids, so that none can be restored.
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


def _drop_bounding(libc: ctypes.CDLL, kept: int) -> None:
    """Clear the ambient set, and the bounding set except the `kept` bits."""
    # No program that is executed later can get what is not in the bounding set.
    for capability in range(MOST_CAPABILITIES):
        if not kept >> capability & 1 and libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            break  # beyond the last capability, or not permitted: then nothing needs dropping
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def _set_capabilities(libc: ctypes.CDLL, sets: tuple[int, int, int, int, int, int]) -> None:
    """Set the effective, permitted, and inheritable sets for good: low words, then high words."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)(*sets)):
        raise OSError(ctypes.get_errno(), "capset")
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")


def _capabilities_left(names: tuple[str, ...]) -> list[str]:
    lines = (line.partition(":") for line in _STATUS.read_text().splitlines())
    return [name for name, _, value in lines if name in names and value.strip("\t 0")]


def _named(name: str) -> Account:
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise LiveError("live capture", f"there is no user {name!r}") from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _numbered(uid: int, gid: int) -> Account:
    try:
        return Account(pwd.getpwuid(uid).pw_name, uid, gid)
    except KeyError:
        return Account(str(uid), uid, gid)


def keep_only(capabilities: Iterable[int]) -> None:
    """Drop all capabilities permanently except these, as far as they are available.

    Raise OSError if that fails.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets):
        raise OSError(ctypes.get_errno(), "capget")
    wanted = sum(1 << number for number in capabilities)
    low, high = sets[1] & wanted, sets[4] & (wanted >> 32)
    _drop_bounding(libc, wanted)
    _set_capabilities(libc, (low, low, 0, high, high, 0))
