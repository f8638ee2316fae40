"""Tables of the protocol as text: entries of parts, easy to read and to compare.

```
# what begins with # is a comment
Name: part; another part;
  a part in the next line
Other: part
```
"""

from __future__ import annotations

from collections.abc import Iterator


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each entry, joined to one line."""
    name, lines = "", list[str]()
    for line in text.splitlines():
        if line.startswith(" "):
            lines.append(line.strip())
        elif line and not line.startswith("#"):
            if name:
                yield name, " ".join(lines).strip()
            name, _, rest = line.partition(":")
            lines = [rest.strip()]
    if name:
        yield name, " ".join(lines).strip()


def parts_of(text: str) -> list[str]:
    """Return the parts of an entry; none if it is empty."""
    return text.split("; ") if text else []
