"""RocketMQ traffic from packet captures: the Python API and the command line `rmqtool`.

`import rmqtool` loads only this file; attributes are imported on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers evaluate it as true; importing `typing` costs time
if TYPE_CHECKING:
    from analytics.diagnosis.problem import Problem
    from analytics.life.life import MessageTrace
    from dissectors.rows.command_record import CommandRow
    from dissectors.rows.conversation_record import ConversationRecord
    from dissectors.rows.message_record import MessageRecord
    from dissectors.rows.record import ExchangeRecord

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
    "CommandRow",
    "ConversationRecord",
    "Error",
    "ExchangeRecord",
    "FilterError",
    "MessageRecord",
    "MessageTrace",
    "MissingExtraError",
    "PluginError",
    "Problem",
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
    "CommandRow": ("dissectors.rows.command_record", ""),
    "ConversationRecord": ("dissectors.rows.conversation_record", ""),
    "ExchangeRecord": ("dissectors.rows.record", ""),
    "MessageTrace": ("analytics.life.life", ""),
    "MessageRecord": ("dissectors.rows.message_record", ""),
    "Problem": ("analytics.diagnosis.problem", ""),
    **{name: ("errors", "") for name in __all__ if name.endswith("Error")},
}
"""name → module (of this package by default) and its name there; empty: the same"""
_OTHER_PACKAGES = ("dissectors.", "analytics.")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import an attribute on first use."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module, inner = _PLACES[name]
        place = module if module.startswith(_OTHER_PACKAGES) else f"{__name__}.{module}"
        value = globals()[name] = getattr(import_module(place), inner or name)
        return value

    def __dir__() -> list[str]:
        """Return the public names."""
        return sorted({*globals(), *_PLACES})
