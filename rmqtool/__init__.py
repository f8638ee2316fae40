"""RocketMQ traffic from packet captures: what programs import, and the command line `rmqtool`.

May import `dissectors`, `replay` and `analytics`; nothing imports it. `import rmqtool` loads
nothing but this file; what is asked of it is imported then.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; `typing` would be one more module
if TYPE_CHECKING:
    from .api.capture import Capture
    from .api.read import read
    from .api.summarised import CaptureSummary
    from .errors import (
        ArgumentError,
        Error,
        FilterError,
        MissingExtraError,
        PluginError,
        ReadError,
        WriteError,
    )
    from .version import VERSION as __version__

__all__ = [
    "ArgumentError",
    "Capture",
    "CaptureSummary",
    "Error",
    "FilterError",
    "MissingExtraError",
    "PluginError",
    "ReadError",
    "WriteError",
    "__version__",
    "read",
]

_PLACES = {
    "__version__": ("version", "VERSION"),
    "Capture": ("api.capture", ""),
    "CaptureSummary": ("api.summarised", ""),
    "read": ("api.read", ""),
    **{name: ("errors", "") for name in __all__ if name.endswith("Error")},
}
"""name → module of this package, and the name there; empty: the same"""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import what is asked for, once."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module, inner = _PLACES[name]
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), inner or name)
        return value

    def __dir__() -> list[str]:
        """Name what can be asked for."""
        return sorted({*globals(), *_PLACES})
