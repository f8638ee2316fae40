"""The bits of sysFlag against the constants of the facts."""

from __future__ import annotations

import pytest

from dissectors.remoting.sysflag import (
    COMPRESSION_MASK,
    TRANSACTION_MASK,
    SysFlag,
    compression_of,
    names_of,
    transaction_of,
)

from .protocol_facts import table


def test_the_bits_are_those_of_the_facts() -> None:
    facts = table("constants.json")["message_sys_flag"]
    assert isinstance(facts, dict)
    assert facts["COMPRESSED_FLAG"] == SysFlag.COMPRESSED
    assert facts["MULTI_TAGS_FLAG"] == SysFlag.MULTI_TAGS
    assert facts["BORNHOST_V6_FLAG"] == SysFlag.BORNHOST_V6
    assert facts["STOREHOSTADDRESS_V6_FLAG"] == SysFlag.STOREHOST_V6
    assert facts["NEED_UNWRAP_FLAG"] == SysFlag.NEED_UNWRAP
    assert facts["INNER_BATCH_FLAG"] == SysFlag.INNER_BATCH
    assert facts["COMPRESSION_TYPE_COMPARATOR"] == COMPRESSION_MASK
    assert facts["TRANSACTION_ROLLBACK_TYPE"] == TRANSACTION_MASK
    for kind in ("lz4", "zstd", "zlib"):
        assert compression_of(facts[f"COMPRESSION_{kind.upper()}_TYPE"] | 1) == kind
    for kind in ("prepared", "commit", "rollback"):
        assert transaction_of(facts[f"TRANSACTION_{kind.upper()}_TYPE"]) == kind


@pytest.mark.parametrize(
    ("sys_flag", "kind"), [(0, None), (0x300, None), (1, "zlib"), (0x701, "unknown(0x700)")]
)
def test_compression(sys_flag: int, kind: str | None) -> None:
    assert compression_of(sys_flag) == kind


def test_names() -> None:
    assert names_of(0) == ()
    assert names_of(0x301) == ("COMPRESSED", "COMPRESSION_ZLIB")
    assert names_of(0x34) == ("BORNHOST_V6", "STOREHOST_V6", "TRANSACTION_PREPARED")
    assert names_of(0x1000) == ("0x1000",)
    assert names_of(-1)[-1] == "0xfffff800"
