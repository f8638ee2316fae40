"""Declare the classes and enums of JSON bodies, as tables.

Imports nothing else of the project.
"""

from __future__ import annotations

from .cluster import CLUSTER_CLASSES
from .consumers import CONSUMERS_CLASSES
from .enums import ENUMS
from .lite import LITE_CLASSES
from .member import Members, ShortMember
from .messaging import MESSAGING_CLASSES
from .topics import TOPICS_CLASSES

__all__ = ["CLASSES", "ENUMS", "Members", "ShortMember"]

CLASSES: dict[str, Members] = {
    **MESSAGING_CLASSES,
    **TOPICS_CLASSES,
    **CONSUMERS_CLASSES,
    **CLUSTER_CLASSES,
    **LITE_CLASSES,
}
"""Java class → its members."""
