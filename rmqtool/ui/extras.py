"""The optional libraries: which extra installs which, and the error where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from .status import CommandError

EXTRA_OF = {
    "duckdb": "report",
    "numpy": "report",
    "pyspark": "spark",
    "pandas": "spark",
    "pyarrow": "parquet",
    "grpc": "connect",
    "grpc_status": "connect",
    "scapy": "live",
    "textual": "browse",
    "mcp": "mcp",
    "prometheus_client": "watch",
    "opentelemetry": "watch",
    "requests": "watch",
}
"""library → the extra of `pyproject.toml` that installs it"""
REPORT_LIBRARIES = ("duckdb", "numpy", "pyarrow")
"""Libraries of `rmqtool report` without Spark; the extra `report` has them all."""
SPARK_LIBRARIES = ("pyspark", "pandas", "pyarrow", "duckdb")
"""Libraries of `rmqtool report` with Spark; the extra `spark` has them all."""
CONNECT_LIBRARIES = (*SPARK_LIBRARIES, "grpc", "grpc_status")
"""Libraries of `rmqtool report` with Spark Connect; the extra `connect` has them all."""


def require(what: str, extra: str, *libraries: str) -> None:
    """Raise CommandError if a library that `what` needs is not installed."""
    missing = [name for name in libraries if not _is_installed(name)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise CommandError(
            f"{what} needs {', '.join(missing)}, which {verb} not installed", way_out(extra)
        )


def way_out(extra: str) -> str:
    """Return how to install an extra."""
    return f"pip install 'rmqtool[{extra}]'"


def missing_library(error: ImportError) -> tuple[str, str] | None:
    """Return (library, extra) for an import that failed without an extra, or None."""
    library = (error.name or "").split(".")[0]
    extra = EXTRA_OF.get(library)
    return (library, extra) if extra and isinstance(error, ModuleNotFoundError) else None


def are_installed(*libraries: str) -> bool:
    """Return whether all these libraries are installed."""
    return all(map(_is_installed, libraries))


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: its entry in sys.modules is None
        return False
