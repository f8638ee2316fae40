"""The Lua text: literals, tables that say what ours say, names that filters can have."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dissectors.findings import FindingKind
from dissectors.remoting.code_names import OPERATIONS
from dissectors.remoting.headers import HEADERS, HOOK_FIELDS, SECRET_FIELDS
from dissectors.remoting.messages.properties import PROPERTIES
from dissectors.wireshark import SIGNATURE, literal_of, lua_text
from dissectors.wireshark.lua_tables import OWN, header_filters, property_filters, tables

from .tshark import run_tshark

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "send-sync-5x.pcap"
VALUES = [
    None,
    True,
    -1,
    2**40,
    1.5,
    "",
    'quote " backslash \\ end]] --',
    "line\nend\r\t\0 zero",
    "中文 😀",
    {"end": 1, "name": [], "two words": {"1": "x"}},
    [[1, 2], {"nil": False}, "é"],
]


@pytest.mark.tshark
def test_literals_are_read_back(dissector: Path, tmp_path: Path) -> None:
    """By the Lua that is in tshark, which says them again as JSON."""
    rows = [{"value": value} for value in VALUES]
    script = tmp_path / "literals.lua"
    script.write_text(
        f"local rows = {literal_of(rows)}\n"
        r"""
        local function said(value)
          if type(value) == "table" then
            local parts = {}
            for _, item in ipairs(value) do parts[#parts + 1] = said(item) end
            if #parts > 0 or next(value) == nil then
              return "[" .. table.concat(parts, ",") .. "]"
            end
            for key, item in pairs(value) do
              parts[#parts + 1] = said(key) .. ":" .. said(item)
            end
            return "{" .. table.concat(parts, ",") .. "}"
          elseif type(value) == "string" then
            return '"' .. value:gsub('[%c"\\]', function(c)
              return string.format("\\u%04x", c:byte())
            end) .. '"'
          end
          return type(value) == "number" and string.format("%.14g", value) or tostring(value)
        end
        local parts = {}
        for _, row in ipairs(rows) do
          parts[#parts + 1] = row.value == nil and "null" or said(row.value)
        end
        print("JSON[" .. table.concat(parts, ",") .. "]")
        """,
        encoding="utf-8",
    )
    out = run_tshark(script, SAMPLE, "-c", "1")
    assert json.loads(re.search(r"JSON(\[.*\])", out)[1]) == VALUES  # type: ignore[index]


def test_only_values_have_literals() -> None:
    with pytest.raises(ValueError, match="object has no form"):
        literal_of(object())


def test_the_text_is_the_same_each_time() -> None:
    text = lua_text("1.2.3")
    assert text == lua_text("1.2.3")
    assert text.startswith(f"{SIGNATURE} 1.2.3\n")
    assert "\t" not in text
    assert max(map(len, text.splitlines())) <= 400


@pytest.mark.parametrize("version", ['1"', "1\n", "1\\"])
def test_a_version_cannot_leave_its_quotes(version: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        lua_text(version)


def test_filters_have_every_field_once() -> None:
    rows = [*header_filters(), *property_filters()]
    names = [row.abbreviation for row in rows]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names)
    assert not OWN & set(names)
    known = {row.name for row in header_filters()}
    assert known >= {field.name for fields in HEADERS.values() for field in fields}
    assert known >= {*HOOK_FIELDS, *SECRET_FIELDS}
    assert {row.name for row in property_filters()} >= {one.name for one in PROPERTIES}


def test_own_fields_are_those_of_the_lua_source() -> None:
    source = Path(lua_text.__code__.co_filename).with_name("fields.lua").read_text()
    declared = set(re.findall(r'declare\("\w+", P\.\w+, "([^".]+)[".]', source))
    # Names with an underscore are not Java names.
    assert {name for name in declared if "_" not in name} <= OWN
    assert not {name for name in declared if "_" in name} & {row.name for row in header_filters()}


def test_tables_name_what_there_is() -> None:
    found = tables()
    headers = found["headers"]
    operations = found["operations"]
    assert isinstance(headers, dict)
    assert isinstance(operations, dict)
    assert set(operations) == set(map(int, OPERATIONS))
    for row in operations.values():
        assert {name for name in row[:2] if name} <= set(headers)
    experts = found["experts"]
    assert isinstance(experts, list)
    kinds = {kind.name.lower(): kind for kind in FindingKind}
    for row in experts:
        if row["name"] in kinds:
            assert row["meaning"] == kinds[row["name"]].meaning


@pytest.mark.tshark
def test_every_field_is_registered(dissector: Path, tmp_path: Path) -> None:
    """Wireshark accepts all of them, with the type that a filter compares by."""
    types = {
        "string": "FT_STRING",
        "int": "FT_INT32",
        "long": "FT_INT64",
        "boolean": "FT_BOOLEAN",
        "double": "FT_DOUBLE",
        "BoundaryType": "FT_STRING",
    }
    # -G knows no other option: the dissector must lie among the plugins.
    plugins = tmp_path / ".local" / "lib" / "wireshark" / "plugins"
    plugins.mkdir(parents=True)
    shutil.copy(dissector, plugins)
    done = subprocess.run(
        ["tshark", "-G", "fields"],
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    lines = [line.split("\t") for line in done.stdout.decode().splitlines()]
    registered = {line[2]: line[3] for line in lines if line[0] == "F"}
    for row in (*header_filters(), *property_filters()):
        assert registered[f"rocketmq.{row.abbreviation}"] == types[row.type], row
