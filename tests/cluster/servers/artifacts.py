"""RocketMQ's jars from Maven Central, pinned, and our own Java programs compiled against them.

Rules:
- What is downloaded is exactly what `locks/<release>.txt` names: every jar with its SHA-256, no
  transitive resolution.
- Jars and classes live in a cache outside the tree (`$RMQTOOL_CACHE`, else `~/.cache/rmqtool`)
  that survives runs.
- What cannot be had is `Unavailable` with the reason, so that tests can skip with it.
- One process at a time makes a folder of the cache; those that want the same wait for it.

RocketMQ: the modules namesrv, broker, tools, client and what they depend on.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parents[1]
"""the folder of the test cluster"""
LOCKS = HERE / "locks"
JAVA_SOURCES = HERE / "java"
GROUP = "org.apache.rocketmq"
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
MAVEN_TIMEOUT = 600
PROGRAMS = "programs.jar"
"""A jar, not a folder: Java archives classes of jars alone (`class_archive`)."""
LIGHT = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""JVM options for a machine that is shared: one collector thread, the quick compiler only."""
FOREIGN_NATIVES = ("osx", "linux-riscv64", "windows")
"""Classifiers of native libraries for other platforms: megabytes that no run here loads."""


class Unavailable(Exception):
    """The cluster cannot be had on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Release:
    """One RocketMQ release as Maven Central has it."""

    version: str
    """The Maven version; the key in `RELEASES` is the name of the lock file."""
    roots: tuple[str, ...]
    """Artifacts asked for; everything else in the lock follows from them."""
    generation: str
    """`v43`, `v4`, `v51`, `v5` or `grpc`: which of the source folders compiles against it."""
    programs: tuple[str, ...] = ()
    """Programs of `java/both` that compile against it; empty: all."""


SERVER = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-tools", "rocketmq-client")
RELEASES = {
    # The last client that knows neither ACL nor namespaces, nor ends a connection at a timeout.
    "4.3.2": Release("4.3.2", ("rocketmq-client",), "v43", ("FaultSend.java",)),
    # 4.9.8 has no broker and no NameServer on Maven Central; 4.9.7 is the newest server of 4.x.
    "4.9.7": Release("4.9.7", (*SERVER, "rocketmq-acl"), "v4"),
    "4.9.8": Release("4.9.8", ("rocketmq-tools", "rocketmq-client", "rocketmq-acl"), "v4"),
    # The client that never goes back to a broker that refused once (fixed in 5.2.0).
    "5.1.4": Release(
        "5.1.4",
        ("rocketmq-client", "rocketmq-acl"),
        "v51",
        ("FaultSend.java", "Options.java"),
    ),
    "5.3.3": Release("5.3.3", SERVER, "v5"),
    "5.5.0": Release("5.5.0", SERVER, "v5"),
    "5.3.3-proxy": Release("5.3.3", (*SERVER, "rocketmq-proxy"), "v5"),
    "5.5.0-proxy": Release("5.5.0", (*SERVER, "rocketmq-proxy"), "v5"),
    # The client of 5.x that speaks gRPC with a proxy; its releases are counted for themselves.
    "grpc-5.2.0": Release("5.2.0", ("rocketmq-client-java",), "grpc", ("Host.java",)),
}
NEWEST_5 = "5.5.0"
NEWEST_4 = "4.9.8"
NEWEST_4_SERVER = "4.9.7"
OLD_4 = "4.3.2"
OLD_5 = "5.1.4"
PROXY_5 = "5.5.0-proxy"
PROXY_53 = "5.3.3-proxy"
GRPC_5 = "grpc-5.2.0"
TLS_AGENT = "tls-agent"
"""no release: the lock of the Java agent that writes secrets of TLS sessions"""


def cache_root() -> Path:
    """The folder that outlives a run: `$RMQTOOL_CACHE`, else `~/.cache/rmqtool`."""
    configured = os.environ.get("RMQTOOL_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "rmqtool"


def java_program(name: str) -> str:
    """Path of a program of the JDK; raises `Unavailable` where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / name)) if home else None
    found = found or shutil.which(name)
    if found is None:
        raise Unavailable(f"no {name} on this machine (a JDK is needed)")
    return found


def class_path(version: str) -> str:
    """Java class path of a release's jars and of our programs compiled against them."""
    jars = fetch(version)
    return f"{compile_programs(version) / PROGRAMS}:{jars}/*"


def fetch(version: str) -> Path:
    """Folder with the jars of a release, downloaded and checked once."""
    lock = LOCKS / f"{version}.txt"
    text = lock.read_bytes()
    pinned = [line.split() for line in text.decode().splitlines() if line and line[0] != "#"]

    def make(work: Path) -> Path:
        pom, jars = work / "pom.xml", work / "lib"
        pom.write_text(_pom([coordinate for coordinate, _ in pinned], transitive=False))
        _maven(pom, "copy-dependencies", f"-DoutputDirectory={jars}")
        for coordinate, digest in pinned:
            jar = jars / _jar_name(coordinate)
            if not jar.is_file() or hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
                raise Unavailable(f"{coordinate} is not the jar that {lock.name} pins")
        return jars

    return made_once(f"jars/{version}-{hashlib.sha256(text).hexdigest()[:12]}", make)


def write_lock(version: str) -> Path:
    """Resolves a release with all it depends on and pins what came; returns the lock file."""
    release = RELEASES[version]
    with tempfile.TemporaryDirectory(prefix="rmqtool-maven-") as work:
        pom = Path(work) / "pom.xml"
        pom.write_text(
            _pom([f"{GROUP}:{a}:{release.version}" for a in release.roots], transitive=True)
        )
        listing = Path(work) / "list.txt"
        _maven(pom, "list", f"-DoutputFile={listing}", "-DincludeScope=runtime")
        _maven(pom, "copy-dependencies", f"-DoutputDirectory={work}/lib")
        lines = []
        for line in sorted(listing.read_text().splitlines()):
            parts = line.strip().split(" ")[0].split(":")
            if len(parts) not in (5, 6) or parts[2] != "jar":
                continue
            # g:a:jar:version:scope, or g:a:jar:classifier:version:scope
            classifier = parts[3] if len(parts) == 6 else ""
            if classifier.startswith(FOREIGN_NATIVES):
                continue
            fields = [parts[0], parts[1], parts[-2]] + ([classifier] if classifier else [])
            coordinate = ":".join(fields)
            digest = hashlib.sha256((Path(work) / "lib" / _jar_name(coordinate)).read_bytes())
            lines.append(f"{coordinate} {digest.hexdigest()}")
    lock = LOCKS / f"{version}.txt"
    head = f"# RocketMQ {version}: every jar on the class path with its SHA-256.\n"
    lock.write_text(head + "".join(f"{line}\n" for line in lines))
    return lock


def compile_programs(version: str) -> Path:
    """Folder with the jar of our programs, compiled against a release when they changed."""
    release = RELEASES[version]
    sources = sorted(
        path
        for folder in ("both", release.generation)
        for path in (JAVA_SOURCES / folder).glob("*.java")
    )
    if release.programs:
        sources = [
            path
            for path in sources
            if path.parent.name == release.generation or path.name in release.programs
        ]
    if "rocketmq-broker" not in release.roots:
        sources = [path for path in sources if path.name != "Node.java"]
    resources = sorted((JAVA_SOURCES / "resources").iterdir())
    digest = digest_of([LOCKS / f"{version}.txt", *sources, *resources])

    def make(work: Path) -> Path:
        out, jar = work / "classes", work / "jar" / PROGRAMS
        command = [java_program("javac"), *(f"-J{option}" for option in LIGHT), "-nowarn"]
        command += ["-encoding", "UTF-8", "-d", str(out), "-cp", f"{fetch(version)}/*"]
        run = subprocess.run(
            [*command, *map(str, sources)],
            capture_output=True,
            text=True,
            timeout=MAVEN_TIMEOUT,
        )
        if run.returncode != 0:
            raise RuntimeError(f"javac against {version}:\n{run.stderr[-4000:]}")
        for resource in resources:
            shutil.copy(resource, out)
        jar.parent.mkdir()
        with zipfile.ZipFile(jar, "w") as archive:
            for path in sorted(out.rglob("*")):
                archive.write(path, path.relative_to(out))
        return jar.parent

    return made_once(f"programs/{version}-{digest}", make)


def digest_of(files: Iterable[Path]) -> str:
    """Short digest of the names and contents of files, for the name of a cache folder."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def made_once(name: str, make: Callable[[Path], Path]) -> Path:
    """A folder of the cache, which one process makes while others that want it wait.

    `make` works in a temporary folder and returns the one that becomes the folder of the cache.
    """
    folder = cache_root() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock").open("w")
    with lock, tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as work:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel frees it, whatever happens to this process
        if not folder.is_dir():
            make(Path(work)).rename(folder)
    return folder


def _jar_name(coordinate: str) -> str:
    _, artifact, version, *classifier = coordinate.split(":")
    return "-".join([artifact, version, *classifier]) + ".jar"


def _pom(coordinates: list[str], *, transitive: bool) -> str:
    """A pom that depends on these and, unless transitive, on nothing behind them."""
    stop = (
        ""
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    )
    rows = []
    for coordinate in coordinates:
        group, artifact, version, *classifier = map(escape, coordinate.split(":"))
        rows.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>"
            + "".join(f"<classifier>{name}</classifier>" for name in classifier)
            + ("" if transitive else stop)
            + "</dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>rmqtool</groupId><artifactId>cluster</artifactId><version>1</version>"
        f"<dependencies>{''.join(rows)}</dependencies></project>"
    )


def _maven(pom: Path, goal: str, *options: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("no mvn on this machine")
    command = [maven, "-q", "-B", "-f", str(pom), f"{DEPENDENCY_PLUGIN}:{goal}", *options]
    env = {"MAVEN_OPTS": " ".join(LIGHT)} | os.environ
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT, env=env
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"Maven did not finish within {MAVEN_TIMEOUT} s") from error
    if run.returncode != 0:
        lines = [line for line in run.stdout.splitlines() if "ERROR" in line]
        raise Unavailable(f"Maven could not fetch the jars: {' '.join(lines)[:500]}")
