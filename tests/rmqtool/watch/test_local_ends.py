"""Who is at the other end: processes, containers and pods of this machine, unknown where unseen."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rmqtool.watch.local_ends import LocalEnds

CONTAINER = "0123456789abcdef" * 4
POD = "11111111-2222-3333-4444-555555555555"
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"


def test_a_process_of_ours_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        name = server.getsockname()
        with socket.create_connection(name) as client:
            here = f"127.0.0.1:{client.getsockname()[1]}"
            found = LocalEnds().of([(here, f"127.0.0.1:{name[1]}")])
    assert [(one.role, one.pid) for one in found] == [
        ("client", os.getpid()),
        ("server", os.getpid()),
    ]
    assert found[0].process is not None
    assert found[0].text.startswith(f"client {here}: ")


def test_what_is_not_of_this_machine_is_left_out_and_what_is_not_there_unknown() -> None:
    found = LocalEnds().of([("192.0.2.1:5000", "127.0.0.1:1")])
    assert [(one.address, one.process) for one in found] == [("127.0.0.1:1", None)]
    assert found[0].text == "server 127.0.0.1:1: process unknown"


class Machine:
    """A /proc with processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.add("self", 1, "net:[1]", [])

    def add(
        self,
        pid: str,
        inode: int,
        network: str,
        sockets: list[str],
        cgroup: str = "0::/",
        hostname: str = "",
    ) -> None:
        home = self.folder / pid
        for name in ("fd", "ns", "net", "root/etc"):
            (home / name).mkdir(parents=True)
        (home / "fd" / "3").symlink_to(f"socket:[{inode}]")
        (home / "ns" / "net").symlink_to(network)
        lines = [f"   {n}: {one}" for n, one in enumerate(sockets)]
        (home / "net" / "tcp").write_text("\n".join([HEAD, *lines]) + "\n")
        (home / "comm").write_text("java\x1b[2J\n")
        (home / "cgroup").write_text(cgroup + "\n")
        if hostname:
            (home / "root/etc/hostname").write_text(hostname + "\n")


def line(local: str, state: str, inode: int) -> str:
    rest = "00000000:0000 {} 00000000:00000000 00:00000000 00000000 0 0 {} 1"
    return f"{local} {rest.format(state, inode)}"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_pods_and_containers_are_named_by_their_control_groups(machine: Machine) -> None:
    groups = (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}"
        f".slice/cri-containerd-{CONTAINER}.scope"
    )
    machine.add("77", 500, "net:[2]", [line("0500000A:2A9F", "0A", 500)], groups, "broker-0")
    (end,) = LocalEnds(machine.folder).of([("192.0.2.1:5", "10.0.0.5:10911")])
    assert (end.pid, end.container, end.pod) == (77, CONTAINER[:12], "broker-0")
    assert end.process is not None
    assert "\x1b" not in end.text


def test_a_pod_without_a_host_name_has_its_uid(machine: Machine) -> None:
    groups = f"12:memory:/kubepods/pod{POD}/{CONTAINER}"
    machine.add("77", 500, "net:[2]", [line("0500000A:2A9F", "01", 500)], groups)
    (end,) = LocalEnds(machine.folder).of([("192.0.2.1:5", "10.0.0.5:10911")])
    assert (end.container, end.pod) == (CONTAINER[:12], POD)


def test_one_address_in_two_networks_is_unknown(machine: Machine) -> None:
    machine.add("77", 500, "net:[2]", [line("0500000A:2A9F", "0A", 500)])
    machine.add("78", 600, "net:[3]", [line("0500000A:2A9F", "0A", 600)])
    (end,) = LocalEnds(machine.folder).of([("192.0.2.1:5", "10.0.0.5:10911")])
    assert (end.pid, end.process) == (None, None)


def test_the_socket_of_another_user_is_unknown(machine: Machine) -> None:
    own = machine.folder / "self" / "net" / "tcp"
    own.write_text(f"{HEAD}\n 0: {line('0100007F:2A9F', '0A', 999)}\n")
    (end,) = LocalEnds(machine.folder).of([("192.0.2.1:5", "127.0.0.1:10911")])
    assert end.text == "server 127.0.0.1:10911: process unknown"


@pytest.mark.parametrize("text", ["", "zz", "0100007F", "0100007F:zz", ": : :", "\x00" * 50])
def test_hostile_tables_are_survived(machine: Machine, text: str) -> None:
    (machine.folder / "self" / "net" / "tcp").write_text(f"{HEAD}\n 0: {text} a b c d e f g h i\n")
    assert LocalEnds(machine.folder).of([("192.0.2.1:5", "127.0.0.1:10911")])[0].pid is None
