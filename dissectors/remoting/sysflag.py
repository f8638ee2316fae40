"""Bits of a message's sysFlag: compression, tags, transaction, host family, batches.

The same number is in stored records and (without the host bits) in send headers. RocketMQ:
MessageSysFlag, CompressionType.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final


class SysFlag(IntFlag):
    """Single bits of sysFlag; the transaction and compression types are two fields of bits."""

    COMPRESSED = 0x001
    MULTI_TAGS = 0x002
    BORNHOST_V6 = 0x010
    STOREHOST_V6 = 0x020
    NEED_UNWRAP = 0x040
    INNER_BATCH = 0x080


# Plain numbers, because `~` of an IntFlag drops unnamed bits.
HOST_BITS: Final = 0x030
UNWRAP_BITS: Final = 0x0C0
COMPRESSION_BITS: Final = 0x701
"""All bits about compression: whether, and how."""
TRANSACTION_MASK: Final = 0x00C
COMPRESSION_MASK: Final = 0x700

NO_TRANSACTION: Final = 0x0
"""As commitOrRollback: unknown yet."""
PREPARED: Final = 0x4
COMMIT: Final = 0x8
ROLLBACK: Final = 0xC
TRANSACTION_NAMES: Final = {
    NO_TRANSACTION: "none",
    PREPARED: "prepared",
    COMMIT: "commit",
    ROLLBACK: "rollback",
}
"""Transaction type by the bits of `TRANSACTION_MASK`."""

# Type 0 is written by clients older than the type bits, which support only zlib.
COMPRESSION_NAMES: Final = {0x000: "zlib", 0x100: "lz4", 0x200: "zstd", 0x300: "zlib"}
"""Compression kind by the bits of `COMPRESSION_MASK`, for a compressed body."""
COMPRESSION_TYPES: Final = {"lz4": 0x100, "zstd": 0x200, "zlib": 0x300}
"""Bits of `COMPRESSION_MASK` that a current client writes, by compression kind."""


def transaction_of(sys_flag: int) -> str:
    """Return "none", "prepared" (a half message), "commit" or "rollback"."""
    return TRANSACTION_NAMES[sys_flag & TRANSACTION_MASK]


def compression_of(sys_flag: int) -> str | None:
    """Return the compression kind, `unknown(0x..)` if undefined, None if not compressed."""
    if not sys_flag & 0x001:
        return None
    bits = sys_flag & COMPRESSION_MASK
    return COMPRESSION_NAMES.get(bits) or f"unknown({bits:#05x})"


def names_of(sys_flag: int) -> tuple[str, ...]:
    """Return RocketMQ's names of the set bits, unknown bits as one number."""
    names = [flag.name for flag in SysFlag if sys_flag & flag and flag.name]
    if sys_flag & TRANSACTION_MASK:
        names.append(f"TRANSACTION_{transaction_of(sys_flag).upper()}")
    if kind := compression_of(sys_flag):
        names.append(f"COMPRESSION_{kind.upper()}")
    known = TRANSACTION_MASK | COMPRESSION_MASK | sum(SysFlag)
    if rest := sys_flag & 0xFFFFFFFF & ~known:
        names.append(f"{rest:#x}")
    return tuple(names)
