"""tshark with the Lua dissector: started for tests, its JSON read as layers of names and values."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.traffic.joined import Joined

PACKETS = ("rocketmq.request_in", "rocketmq.response_in")
"""fields whose value is the number of a packet"""
Layer = list[tuple[str, object]]
"""What tshark shows of one command: names and values in order; values of subtrees are layers."""


def run_tshark(dissector: Path, capture: Path, *options: str) -> str:
    """What tshark says of a capture; nothing may be wrong in Lua."""
    environment = {**os.environ, "HOME": str(dissector.parent), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    done = subprocess.run(
        ["tshark", "-n", "-X", f"lua_script:{dissector}", "-r", str(capture), *options],
        capture_output=True,
        check=False,
        env=environment,
    )
    out, errors = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert "Lua" not in errors, errors
    assert "Lua Error" not in out
    return out


def in_any_order(wanted: bool = True) -> tuple[str, str]:
    """Options: late segments are put in their place; tshark then waits for holes for ever."""
    return ("-o", f"tcp.reassemble_out_of_order:{str(wanted).upper()}")


def layers_of(dissector: Path, capture: Path, *options: str) -> list[tuple[int, Layer]]:
    """Packet number and layer of all that the dissector shows, in order; requests know answers."""
    form = ("-2", "-T", "json", "-J", "rocketmq frame", "-Y", "rocketmq")
    out = run_tshark(dissector, capture, *form, *options)
    found: list[tuple[int, Layer]] = []
    for packet in json.loads(out, object_pairs_hook=list, strict=False):
        layers = layer_of(layer_of(packet, "_source"), "layers")
        number = int(text_of(layer_of(layers, "frame"), "frame.number"))
        found += [
            (number, layer)
            for name, layer in layers
            if name == "rocketmq" and isinstance(layer, list)
        ]
    return found


def commands_of(dissector: Path, capture: Path, *options: str) -> dict[int, list[Layer]]:
    """The commands that tshark shows, by number of the packet."""
    found: dict[int, list[Layer]] = defaultdict(list)
    for number, layer in layers_of(dissector, capture, *options):
        if text_of(layer, "rocketmq.code"):
            found[number].append(layer)
    return found


def commands_in(
    joined: Joined, found: dict[int, list[Layer]]
) -> dict[Path, dict[int, list[Layer]]]:
    """The same in each of several captures, by the numbers that packets have there."""
    of: dict[Path, dict[int, list[Layer]]] = {part.path: {} for part in joined.parts}
    for number, layers in found.items():
        part = joined.part_of(number)
        of[part.path][part.number(number)] = [
            [
                (name, str(part.number(int(str(value)))) if name in PACKETS else value)
                for name, value in layer
            ]
            for layer in layers
        ]
    return of


def layer_of(layer: Layer, name: str) -> Layer:
    """The first subtree of that name; an empty one where there is none."""
    for one, value in layer:
        if one == name and isinstance(value, list):
            return value
    return []


def flat(layer: Layer) -> Iterator[tuple[str, str]]:
    """The fields of a layer and all its subtrees."""
    for name, value in layer:
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, list):
            yield from flat(value)


def texts_of(layer: Layer, name: str) -> list[str]:
    """All values of a field, in order."""
    return [value for one, value in flat(layer) if one == name]


def text_of(layer: Layer, name: str) -> str:
    """The last value of a field; empty where there is none."""
    values = texts_of(layer, name)
    return values[-1] if values else ""


def experts_of(layer: Layer) -> set[str]:
    """The names of the findings that are shown with a command."""
    prefix = "rocketmq.expert."
    return {name.removeprefix(prefix) for name, _ in flat(layer) if name.startswith(prefix)}
