"""Client programs as traffic sources: our own on the Java and Go clients, and mqadmin.

Each is a process of its own with `key=value` arguments (see `java/both/Options.java`); what it
printed is returned. Java programs share one that has started already (`hosts`), but in recordings
and where they are not `hosted`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.cluster.servers.artifacts import (
    HERE,
    JAVA_SOURCES,
    LOCKS,
    NEWEST_5,
    RELEASES,
    Unavailable,
    class_path,
    digest_of,
    made_once,
)
from tests.cluster.servers.processes import OwnedProcess, java_command, wait_until

from . import hosts

GO_SOURCES = HERE / "go"
GO_GRPC_SOURCES = HERE / "go_grpc"
PYTHON_GRPC = HERE / "python" / "grpc_client.py"
PYTHON_LOCK = LOCKS / "python-grpc.txt"
CPP = HERE / "python" / "cpp_client.py"
CPP_LOCK = LOCKS / "python-cpp.txt"
"""the C++ client, which its Python binding brings"""
PYTHON_STUCK_LOCK = LOCKS / "python-grpc-5.1.0.txt"
"""the release whose push consumer hangs in its start"""
GO_TIMEOUT = 600
PIP_TIMEOUT = 600
QUICK_REBALANCE = "rocketmq.client.rebalance.waitInterval=2000"
"""In production a consumer that was not told of a change looks only every 20 s, and for the route
of a fresh retry topic every 30 s: the option `poll_ms`."""
MQADMIN = "org.apache.rocketmq.tools.command.MQAdminStartup"


class Client:
    """A running client program, in a folder of its own that goes when it has finished."""

    def __init__(self, process: OwnedProcess | hosts.HostedProgram, folder: Path, name: str):
        self.name = name
        self._folder = folder
        self._process = process
        self._printed = ""

    @property
    def output(self) -> str:
        """What it printed so far."""
        if self._process.log.exists():
            self._printed = self._process.log.read_text(errors="replace")
        return self._printed

    def wait_for(self, text: str, timeout: float = 90.0) -> None:
        """Waits until it printed that text; raises when it ended without."""

        def printed() -> bool:
            ended = self._process.returncode is not None
            if text in self.output:
                return True
            if ended:
                raise RuntimeError(self._process.describe(f"ended without {text!r}"))
            return False

        try:
            wait_until(f"{self.name} prints {text!r}", printed, timeout)
        except TimeoutError as error:
            raise TimeoutError(self._process.describe(f"({self.name}) {error}")) from None

    def end_input(self) -> None:
        """Ends its standard input, which our programs take as the wish to end."""
        self._process.end_input()

    def stop(self) -> None:
        """Ends it wherever it is."""
        self._process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """Ends it at once, without a word to anybody."""
        self._process.kill()
        _ = self.output  # what it printed to the last moment
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """It stands still; its connections stay open."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def finish(self, timeout: float = 60.0, expect: int | None = 0) -> str:
        """Waits for its end and returns what it printed; raises when it failed."""
        try:
            status = self._process.wait(timeout)
            if expect is not None and status != expect:
                raise RuntimeError(self._process.describe(f"({self.name}) exited with {status}"))
            return self.output
        finally:
            self._process.kill()
            shutil.rmtree(self._folder, ignore_errors=True)


def start_java(
    program: str,
    namesrv: str,
    *,
    version: str = NEWEST_5,
    properties: Iterable[str] = (),
    agent: str = "",
    clock: str = "",
    hosted: bool = True,
    **options: object,
) -> Client:
    """Starts one of our Java programs, with a Java agent or without.

    Options become `key=value` with `_` written as `-`. One with an agent or a clock of its own
    (`-70s`) is never `hosted`, nor is one of a release that `Host` is not compiled for.
    """
    arguments = [f"namesrv={namesrv}"]
    arguments += [f"{name.replace('_', '-')}={_text(value)}" for name, value in options.items()]
    programs = RELEASES[version].programs
    has_host = not programs or "Host.java" in programs
    if hosted and has_host and not agent and not clock and hosts.are_shared:
        return _start_hosted(program, arguments, version, properties)
    return _start_main(program, arguments, version, properties, agent, clock)


def run_java(
    program: str, namesrv: str, *, timeout: float = 90.0, expect: int | None = 0, **options: object
) -> str:
    """Runs one of our Java programs to its end; returns what it printed."""
    return start_java(program, namesrv, **options).finish(timeout, expect)  # type: ignore[arg-type]


def run_mqadmin(arguments: Sequence[str], namesrv: str, version: str = NEWEST_5) -> str:
    """Runs one command of RocketMQ's mqadmin; returns what it printed, raises when it failed.

    `namesrv`: empty for a command that reads files.
    """
    words = [*arguments, "-n", namesrv] if namesrv else list(arguments)
    if hosts.are_shared:
        # With a host of its own: that of 4.x sets up its log for the whole process.
        printed = _start_hosted(MQADMIN, words, version, kind="mqadmin").finish()
    else:
        printed = _start_main(MQADMIN, words, version, ()).finish()
    if "SubCommandException" in printed or "usage: mqadmin" in printed:
        # It exits with 0 all the same.
        raise RuntimeError(f"mqadmin {' '.join(arguments)}: {printed[-2000:]}")
    return printed


def start_go(arguments: Iterable[str], sources: Path = GO_SOURCES) -> Client:
    """Starts one of our Go programs on a Go client; raises `Unavailable` where there is no Go."""
    folder = Path(tempfile.mkdtemp(prefix="rmqtool-client-"))
    return _client([str(build_go(sources)), *arguments], folder, "go")


def build_go(folder: Path = GO_SOURCES) -> Path:
    """The Go program, built when its sources changed; the module versions are pinned by go.sum."""

    def make(work: Path) -> Path:
        go = shutil.which("go")
        if go is None:
            raise Unavailable("no go on this machine")
        out = work / "out"
        out.mkdir()
        command = [go, "build", "-mod=readonly", "-trimpath", "-o", f"{out}/client", "."]
        run = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=GO_TIMEOUT
        )
        if run.returncode != 0:
            raise Unavailable(f"the Go client cannot be built: {run.stderr[-1000:]}")
        return out

    sources = sorted(path for path in folder.iterdir() if path.is_file())
    return made_once(f"go/{digest_of(sources)}", make) / "client"


def start_python(arguments: Iterable[str], lock: Path = PYTHON_LOCK) -> Client:
    """Starts our Python program on the client of a lock: one of gRPC, or the C++ client."""
    folder = Path(tempfile.mkdtemp(prefix="rmqtool-client-"))
    program = CPP if lock == CPP_LOCK else PYTHON_GRPC
    command = [sys.executable, str(program), str(fetch_python(lock)), *arguments]
    return _client(command, folder, "python")


def fetch_python(lock: Path = PYTHON_LOCK) -> Path:
    """Folder with the packages of the Python client, as a lock pins them."""

    def make(work: Path) -> Path:
        python = shutil.which("python3") or sys.executable
        packages = work / "packages"
        options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        command = [python, "-m", "pip", "install", *options, "--target", str(packages)]
        run = subprocess.run(
            [*command, "-r", str(lock)], capture_output=True, text=True, timeout=PIP_TIMEOUT
        )
        if run.returncode != 0:
            raise Unavailable(f"the Python client cannot be had: {run.stderr[-1000:]}")
        return packages

    return made_once(f"python/{digest_of([lock])}", make)


def _client(command: Sequence[str], folder: Path, name: str, clock: str = "") -> Client:
    # mqadmin writes files where it is started.
    env = _plain_environment(folder) | (_other_clock(clock) if clock else {})
    return Client(OwnedProcess(command, folder / "output.log", env=env, cwd=folder), folder, name)


def _start_main(
    main: str,
    arguments: Sequence[str],
    version: str,
    properties: Iterable[str],
    agent: str = "",
    clock: str = "",
) -> Client:
    folder = Path(tempfile.mkdtemp(prefix="rmqtool-client-"))
    command = _java(main, arguments, version, folder, properties, agent)
    return _client(command, folder, main.rpartition(".")[2], clock)


def _start_hosted(
    main: str,
    arguments: Sequence[str],
    version: str,
    properties: Iterable[str] = (),
    kind: str = "client",
) -> Client:
    key = (version, kind, *properties)
    host = hosts.take(key)
    if host is None:
        home = hosts.host_folder()
        command = _java("Host", [kind], version, home, key[2:])
        host = hosts.Host(key, command, home, _plain_environment(home))
    folder = Path(tempfile.mkdtemp(prefix="rmqtool-client-"))
    program = hosts.HostedProgram(host, folder / "output.log", [main, *arguments])
    return Client(program, folder, main.rpartition(".")[2])


def _java(
    main: str,
    arguments: Sequence[str],
    version: str,
    folder: Path,
    properties: Iterable[str],
    agent: str = "",
) -> list[str]:
    """The command of a Java program whose home is a folder, which is made ready for it."""
    # mqadmin of 4.x insists on this file below its home.
    quiet = folder / "conf" / "logback_tools.xml"
    quiet.parent.mkdir()
    shutil.copy(JAVA_SOURCES / "resources" / "logback.xml", quiet)
    home = [f"rocketmq.client.logRoot={folder}", f"rocketmq.home.dir={folder}"]
    return java_command(
        class_path(version),
        main,
        arguments,
        folder,
        heap="128m",
        properties=[*home, *properties],
        agent=agent,
    )


def _plain_environment(home: Path) -> dict[str, str]:
    """Nothing of the caller's environment that a client could put on the wire."""
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home)}


def _other_clock(offset: str) -> dict[str, str]:
    """Environment in which a process reads another time; raises `Unavailable`."""
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        raise Unavailable("no libfaketime on this machine")
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": offset,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Java's waits count by the monotonic clock, which is the real one.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
