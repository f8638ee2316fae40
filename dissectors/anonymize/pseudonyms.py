"""Pseudonyms: keyed, consistent, one-to-one, and of the same length.

Rules: a text becomes one of the same length and character classes. Each run of letters and digits
is permuted within its pattern: two names never become one, and a name has the same pseudonym
everywhere: in a topic, in a key such as `%RETRY%group`, in a remark. Addresses keep common
prefixes, private and loopback ranges, and their length as text. Protocol words stay.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from collections import OrderedDict
from collections.abc import Callable, Set
from functools import lru_cache
from typing import Final

from ..foreign import base64_of, hex_bytes_of, hexadecimal_of, natural_of
from ..remoting.headers import covered_remark
from ..remoting.ids.message_ids import GRPC_ID, decode_recall_handle, encode_recall_handle
from ..remoting.ids.trace_context import SW8, TRACEPARENT, decode_sw8, decode_traceparent
from ..remoting.topic_names import DLQ_PREFIX, RETRY_PREFIX
from . import KINDS
from .vocabulary import ENUMS, GROUP_OF, NAME_WORDS, OWN_WORDS, REMARK_WORDS

FIRST_EPHEMERAL: Final = 32768
"""First port of the client range; such ports are replaced."""

_CLASSES: Final = (
    (0x30, 0x3A), (0x41, 0x5B), (0x61, 0x7B),
    (0xC0, 0x800), (0x800, 0x2000), (0x2C00, 0x3000), (0x3041, 0x4E00), (0x4E00, 0xA000),
    (0xA000, 0xD7A4), (0xE000, 0xFDD0), (0xFDF0, 0xFEFE), (0xFF10, 0xFFDD), (0x10000, 0x110000),
)  # fmt: skip
"""Characters that are replaced within their class; all have the same length in UTF-8."""
_CHUNK: Final = 24
"""Characters of a run permuted together."""
_ROUNDS: Final = 10
_IPV4: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}"
_ADDRESS: Final = re.compile(
    rf"(?<![\w.])(?P<v4>{_IPV4})(?![\w.]*\.\d|\w)"
    r"|(?<![\w:.])(?P<v6>[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})"
    r"(?=:\d{1,5}(?![\w:.])|(?![\w:.]))"  # a port may follow without brackets
)
_SOME_IPV4: Final = re.compile(_IPV4)
"""An address that other characters may join, as in `IP_192.0.2.7`."""
_WILDCARD: Final = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}\.(?:\d{1,3}\.)?\*")
"""A network in a list of allowed addresses: `192.0.2.*`."""
_PORT: Final = re.compile(r"(\]?:)(\d{1,5})(?!\d)")
_CLIENT_ID: Final = re.compile(rf"({_IPV4})@([\d#@]+)")
_RECEIPT: Final = re.compile(r"\d+ \d+ \d+ \d+ \d+ \S+ \d+(?: -?\d+){0,4}")
"""Receipt handle of a popped message."""
_BROKER_PART: Final = 5
"""Place of the broker name in a receipt; the other parts are numbers."""
_HEX_ID: Final = re.compile(r"(?:[0-9A-F]{32}|[0-9A-F]{56})")
_GRPC_ID: Final = re.compile(GRPC_ID)
_NUMBERS: Final = re.compile(r"[-\d\s.,;:_/%@|+*]*")
_QUANTITY: Final = re.compile(rf"{_NUMBERS.pattern}(?:[mun]?s|[mhd]|[KMG]?B|[KMG])?")
"""Numbers in a remark, also with a unit."""
_RUN: Final = re.compile(r"[0-9A-Za-z\u00c0-\u1fff\u2c00-\u2fff\u3041-\ud7a3\ue000-\ufdcf"
                         "\ufdf0-\ufefd\uff10-\uffdc\U00010000-\U0010ffff]+")  # fmt: skip
_WORD: Final = re.compile(r"[^\s\[\](){},;:=\"'<>!?|/]+")
_COMPOUND: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)+")
"""Compound words: names are often made so, RocketMQ's own are known."""
_PART: Final = re.compile(r"[^%@\s,;|]+")
_JOINT: Final = re.compile(r"[@#+%]")
"""Characters that join names: topic and group, or the prefix of a topic and a name."""
_MOST_PARTS: Final = 8
_MOST_SEEN: Final = 1 << 16
"""Maximum remembered names and message ids, recognised in texts of unknown meaning."""
_DELIMITERS: Final = "[('\"=<:"
"""Characters before a name in a remark; they mark names that are also words of RocketMQ."""
_PREFIXES: Final = (RETRY_PREFIX, DLQ_PREFIX)
"""Prefixes of topics that contain a group name."""
_LEAST_NUMBER: Final = 4
"""Minimum digits of a number in a remark that may be a name."""
_JAVA_NAME: Final = re.compile(r"(?:javax?|jdk|sun|io\.netty|org\.apache\.rocketmq)\.[\w.$]+$")
"""A class or method in an exception."""
_OF_TOPIC: Final = re.compile(r"(.*: (?:request -?)?\w+ (?:to|of) )(.+)", re.DOTALL)
"""An injected fault: what was done, the request, and its topic."""
_SOURCE_FILE: Final = re.compile(r"([A-Z]\w+)\.java")
_LONGEST_FRAME: Final = 256
"""Maximum characters of class and method before a source file."""
_PRIVATE_SECOND: Final = range(16, 32)
_KEPT_FIRST: Final = frozenset((0, 10, 127, 169, 172, 192))
"""First octets of IPv4 addresses that stay: private, loopback, and link-local ranges."""


class Pseudonyms:
    """Pseudonyms of names, addresses, and texts, by a secret."""

    def __init__(self, secret: bytes, keep: frozenset[str] = frozenset()) -> None:
        """`secret`: at least 16 bytes; `keep`: the `KINDS` that stay."""
        if len(secret) < 16:
            raise ValueError("a secret has at least 16 bytes")
        self._key = hashlib.blake2b(secret, digest_size=32).digest()
        self._keep = keep
        self._kept: set[str] = set()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._ids: OrderedDict[str, None] = OrderedDict()
        self.replaced: dict[str, int] = dict.fromkeys(KINDS, 0)
        """kind → replaced texts"""
        self.run = lru_cache(maxsize=1 << 16)(self._run)
        """A run of letters and digits → its pseudonym."""
        self.address = lru_cache(maxsize=1 << 14)(self._address)
        """4 or 16 bytes of an address → those of its pseudonym."""
        self._cached_name = lru_cache(maxsize=1 << 14)(self._name)

    def port(self, port: int) -> int:
        """Return the pseudonym of a port; server ports stay."""
        if port < FIRST_EPHEMERAL or port > 0xFFFF or "addresses" in self._keep:
            return port
        return FIRST_EPHEMERAL + self._permuted(b"port", 0x8000, port - FIRST_EPHEMERAL)

    @property
    def learns(self) -> bool:
        """Whether a first pass collects the names that stay everywhere."""
        return not self._keep.isdisjoint(GROUP_OF.values())

    def start_over(self) -> None:
        """Reset the counters, but not the names that stay."""
        # `run` stays: it depends on nothing but the secret.
        self._cached_name.cache_clear()
        self.address.cache_clear()
        self.replaced.update(dict.fromkeys(KINDS, 0))

    def name(self, text: str, field: str = "") -> str:
        """Return the pseudonym of a name, key, or property value; digits are replaced, too.

        `field`: its field; names that stay because of it are recognised elsewhere.
        """
        if field and GROUP_OF.get(field) in self._keep and _is_own(text):
            self._kept.add(text)
        if text in self._kept:
            return text
        if text in self._seen:  # one in use is not forgotten for many others, such as keys
            self._seen.move_to_end(text)
        return self.message_id(text) if text in self._ids else self._cached_name(text)

    def is_seen(self, text: str) -> bool:
        """Return whether a text was seen as a name."""
        return text in self._seen

    def value(self, text: str) -> str:
        """Rewrite a field or JSON value: numbers, booleans, and protocol words stay."""
        if not text or text in ENUMS or (_NUMBERS.fullmatch(text) and not _has_address(text)):
            return text
        return self.name(text)

    def remark(self, text: str, words: Set[str] = REMARK_WORDS) -> str:
        """Rewrite a text of a server: only names and addresses change.

        `words`: words that are not names.
        """
        text = covered_remark(text)  # no option keeps a secret key
        if "remarks" in self._keep or not text:
            return text
        self.replaced["remarks"] += 1
        return self._outside_addresses(
            text, lambda part: _WORD.sub(lambda found: self._word(found, words), part)
        )

    def fault(self, text: str) -> str:
        """Rewrite the description of an injected fault."""
        of_topic = _OF_TOPIC.fullmatch(text)
        if of_topic is None or "remarks" in self._keep:
            return self.remark(text, OWN_WORDS)
        # A topic may be a word of rmqtool: only its place tells that it is a name.
        return self.remark(of_topic[1], OWN_WORDS) + self.name(of_topic[2], "topic")

    def message_id(self, text: str) -> str:
        """Rewrite a message id, whose digits may be lowercase, as from Go clients.

        It is then recognised everywhere. Only ids are: most of their digits are times and counters,
        which stay, while digits of an application's key are its own.
        """
        if "," in text:  # ids of a batch
            return ",".join(map(self.message_id, text.split(",")))
        upper = text.upper()
        if not (_HEX_ID.fullmatch(upper) or _GRPC_ID.fullmatch(upper)):
            return self._cached_name(text)
        # Names that stay keep neither addresses nor ports: those of an id are replaced, too.
        _remember(self._ids, text)
        new = self._message_id(upper)
        return new if text == upper else new.lower()

    def recall_handle(self, text: str) -> str:
        """Rewrite the recall handle of a timer message."""
        handle = decode_recall_handle(text)
        if handle is None:
            return self.name(text)
        new = handle._replace(
            topic=self.name(handle.topic),
            broker_name=self.name(handle.broker_name),
            unique_key=self.message_id(handle.unique_key),
        )
        if new == handle:
            return text
        return encode_recall_handle(new)[: len(text)]  # as long: a text may lack the padding

    def trace_context(self, name: str, text: str) -> str | None:
        """Rewrite the ids and names of a W3C or SkyWalking trace context, or return None if it is
        none.
        """
        if name == TRACEPARENT and decode_traceparent(text) is not None:
            version, trace, parent, *rest = text.split("-")
            if "names" in self._keep:
                return text
            rest = [*rest[:1], *map(self.name, rest[1:])]
            return "-".join((version, self._hex(trace).lower(), self._hex(parent).lower(), *rest))
        if name == SW8 and decode_sw8(text) is not None:
            sampled, trace, segment, span, *rest = text.split("-")
            new = (sampled, self._base64(trace), self._base64(segment), span)
            return "-".join((*new, *map(self._base64, rest)))
        return None

    def body(self, data: bytes) -> bytes:
        """Return letters in place of a message body; equal bodies stay equal."""
        if "bodies" in self._keep or not data:
            return data
        self.replaced["bodies"] += 1
        stream = hashlib.shake_256(self._key + b"body" + data).digest(len(data))
        return stream.translate(_LETTERS)

    def number_text(self, digits: str) -> str:
        """Replace the digits of a number derived from a name, such as the hash code of a tag."""
        head, rest = digits[0], digits[1:]
        return head + self.run(rest) if rest else digits

    def checksum(self, crc: int) -> int:
        """Return a replacement for the CRC of a missing body."""
        domain = 1 << (31 if crc < 1 << 31 else 32)
        return self._permuted(b"crc", domain, crc) if 0 <= crc < domain else 0

    # -- internals ------------------------------------------------------------------------------

    def _name(self, text: str) -> str:
        if "names" in self._keep:
            return self._outside_addresses(text, lambda part: part)
        if text in ENUMS:
            return text
        self.replaced["names"] += 1
        if _RECEIPT.fullmatch(text):
            parts = text.split(" ")
            parts[_BROKER_PART] = self.name(parts[_BROKER_PART])
            return " ".join(parts)
        if " " in text:  # several keys
            return " ".join(map(self.name, text.split(" ")))
        _remember(self._seen, text)
        client = _CLIENT_ID.fullmatch(text)
        if client is not None:
            return f"{self._address_text(client[1])}@{client[2]}"
        return self._outside_addresses(text, self._runs)

    def _runs(self, text: str) -> str:
        if not self._kept:
            return _RUN.sub(self._token, text)
        return _PART.sub(
            lambda part: part[0] if part[0] in self._kept else _RUN.sub(self._token, part[0]), text
        )

    def _token(self, match: re.Match[str]) -> str:
        return match[0] if match[0] in NAME_WORDS else self.run(match[0])

    def _word(self, match: re.Match[str], words: Set[str]) -> str:
        """Rewrite a word of a remark."""
        word = match[0]
        if word in self._kept:
            return word
        if "names" in self._keep:
            return self.message_id(word)  # only the address in an id changes
        if word.startswith(_PREFIXES) or (word in self._seen and _is_delimited(match)):
            return self.name(word)
        if self._has_name(word) or _SOME_IPV4.search(word):
            return self.name(word)
        if _QUANTITY.fullmatch(word) or _JAVA_NAME.match(word):
            return word
        source = _SOURCE_FILE.fullmatch(word)
        if source is not None:
            before = match.string[max(match.start() - _LONGEST_FRAME, 0) : match.start()]
            frame = re.split(r"[\s/]", before)[-1].removesuffix("(")
            return word if _JAVA_NAME.match(frame) else f"{self.message_id(source[1])}.java"
        runs = _RUN.findall(word)
        is_known = all(run in words or (run.isdigit() and len(run) < 4) for run in runs)
        compound = _COMPOUND.search(word)
        if is_known and (compound is None or word.isupper() or compound[0] in words):
            return word
        return self.message_id(word)

    def _has_name(self, word: str) -> bool:
        """Return whether a word of a remark joins a seen name with something: `orders@billing`."""
        if _JOINT.search(word) is None:
            return False
        parts = _JOINT.split(word, maxsplit=_MOST_PARTS)
        return any(
            len(part) >= (_LEAST_NUMBER if part.isdigit() else 2) and part in self._seen
            for part in parts
        )

    def _outside_addresses(self, text: str, change: Callable[[str], str]) -> str:
        """Rewrite the addresses in a text, and everything else with `change`."""
        out, at = [], 0
        for match in _ADDRESS.finditer(text):
            shown = match["v4"] or match["v6"]
            if match["v6"] is not None and not _is_ipv6(shown):
                continue
            out.append(change(text[at : match.start()]))
            out.append(self._address_text(shown))
            at = match.end()
            port = _PORT.match(text, at)
            if port is not None:
                out.append(f"{port[1]}{self.port(natural_of(port[2]) or 0)}")
                at = port.end()
        out.append(change(text[at:]))
        return "".join(out)

    def _address_text(self, text: str) -> str:
        """Return the pseudonym of an address text, of the same length."""
        if "addresses" in self._keep:
            return text
        if ":" not in text:
            number = self.address(ipaddress.IPv4Address(text).packed)
            return ".".join(map(str, number))
        whole = self.address(ipaddress.IPv6Address(text).packed)
        groups = [f"{whole[at] << 8 | whole[at + 1]:x}" for at in range(0, 16, 2)]
        head, gap, tail = text.partition("::")
        before = [group for group in head.split(":") if group]
        after = [group for group in tail.split(":") if group]
        shown = groups[: len(before)] + groups[8 - len(after) :] if gap else groups
        widths = [len(group) for group in before + after]
        is_upper = text != text.lower()
        texts = [group.rjust(width, "0") for group, width in zip(shown, widths, strict=True)]
        if is_upper:
            texts = [group.upper() for group in texts]
        front, back = texts[: len(before)], texts[len(before) :]
        return ":".join(front) + gap + ":".join(back)

    def _address(self, packed: bytes) -> bytes:
        if "addresses" in self._keep:
            return packed
        self.replaced["addresses"] += 1
        if len(packed) == 4:
            return self._ipv4(packed)
        if packed[:12] == bytes(10) + b"\xff\xff":
            return packed[:12] + self._ipv4(packed[12:])
        if packed[:15] == bytes(15):
            return packed  # unspecified, loopback
        out = b""
        for at in range(0, 16, 2):
            group = packed[at] << 8 | packed[at + 1]
            if at == 0 and group >> 9 in (0x7E, 0x7F):  # fc00::/7, fe80::/10, multicast
                other = group
            else:
                other = self._in_range(b"v6" + packed[:at], group, _hex_range(group))
            out += other.to_bytes(2, "big")
        return out

    def _ipv4(self, packed: bytes) -> bytes:
        first, second = packed[0], packed[1]
        if first in (0, 127) or packed == b"\xff\xff\xff\xff":
            return packed
        if first in _KEPT_FIRST or first >= 224:
            out = [first]
        else:
            free = [octet for octet in _octets(first) if octet not in _KEPT_FIRST and octet < 224]
            out = [free[self._permuted(b"v4", len(free), free.index(first))]]
        for at in range(1, 4):
            label = b"v4" + packed[:at]
            # 192.168/16, 169.254/16, and 172.16/12 stay within themselves, and the other networks
            # of these first octets outside of them.
            is_fixed = at == 1 and (
                (first == 192 and second == 168) or (first == 169 and second == 254)
            )
            if is_fixed:
                out.append(packed[at])
                continue
            allowed = list(_octets(packed[at]))
            if at == 1 and first == 172 and second in _PRIVATE_SECOND:
                allowed = list(_PRIVATE_SECOND)
            elif at == 1 and first in (172, 192, 169):
                others = {*_PRIVATE_SECOND} if first == 172 else {168, 254}
                allowed = [octet for octet in allowed if octet not in others]
            out.append(allowed[self._permuted(label, len(allowed), allowed.index(packed[at]))])
        return bytes(out)

    def _message_id(self, text: str) -> str:
        """Rewrite the address in a message id; time, offset, and counter stay."""
        if len(text) == 34 and "names" in self._keep:
            return text
        if len(text) == 34:  # of a client of 5.x: version, MAC address, process, time, counter
            return text[:2] + self._hex(text[2:14]) + text[14:]
        size = 8 if len(text) == 32 else 32
        address = self.address(hex_bytes_of(text[:size]) or bytes(size // 2)).hex().upper()
        rest = text[size:]
        if rest.startswith("0000"):  # a port and an offset, not a process id
            rest = f"{self.port(hexadecimal_of(rest[:8]) or 0):08X}{rest[8:]}"
        return address + rest

    def _hex(self, text: str) -> str:
        number = self._permuted(b"hex", 16 ** len(text), hexadecimal_of(text) or 0)
        return f"{number:0{len(text)}X}"

    def _base64(self, text: str) -> str:
        """Rewrite the names in a base64 text, keeping its length."""
        data = base64_of(text) or b""
        new = self.name(data.decode("utf-8", "replace")).encode()
        return base64.b64encode(new).decode() if len(new) == len(data) else "A" * len(text)

    def _run(self, run: str) -> str:
        if len(run) > _CHUNK:
            return "".join(self._run(run[at : at + _CHUNK]) for at in range(0, len(run), _CHUNK))
        # Read as a number in the mixed base of its character classes, a run is one of `domain`.
        bounds = [_class_of(ord(char)) for char in run]
        number, domain = 0, 1
        for char, (first, end) in zip(run, bounds, strict=True):
            number = number * (end - first) + ord(char) - first
            domain *= end - first
        label = b"run" + b"".join(first.to_bytes(3, "big") for first, _ in bounds)
        number = self._permuted(label, domain, number)
        out = []
        for first, end in reversed(bounds):
            number, place = divmod(number, end - first)
            out.append(chr(first + place))
        return "".join(reversed(out))

    def _in_range(self, label: bytes, number: int, allowed: range) -> int:
        return allowed[self._permuted(label, len(allowed), number - allowed.start)]

    def _permuted(self, label: bytes, domain: int, number: int) -> int:
        """Apply a keyed permutation of `range(domain)` to a number.

        A Feistel network over the bits of the domain; numbers outside of it are permuted again.
        """
        if domain < 2:
            return number
        # The network covers less than four times the domain: fewer than four runs on average.
        half = ((domain - 1).bit_length() + 1) // 2
        mask = (1 << half) - 1
        size = (half + 7) // 8
        while True:
            left, right = number >> half, number & mask
            for step in range(_ROUNDS):
                block = label + bytes((step, half)) + right.to_bytes(size, "big")
                digest = hashlib.blake2b(block, key=self._key, digest_size=size).digest()
                left, right = right, left ^ (int.from_bytes(digest, "big") & mask)
            number = left << half | right
            if number < domain:
                return number


def _is_delimited(match: re.Match[str]) -> bool:
    """Return whether a word of a remark, a name elsewhere, is a name here, too."""
    word = match[0]
    if word.isdigit():
        return len(word) >= _LEAST_NUMBER
    before = match.string[: match.start()].rstrip(" ")[-1:]
    return bool(before and before in _DELIMITERS) or _RUN.fullmatch(word) is None


def _has_address(numbers: str) -> bool:
    patterns = (_ADDRESS, _SOME_IPV4, _WILDCARD)
    return any(pattern.search(numbers) is not None for pattern in patterns)


def _is_own(text: str) -> bool:
    """Return whether a name contains no other; retry topics contain that of their group."""
    return not text.startswith(_PREFIXES)


def _remember(known: OrderedDict[str, None], text: str) -> None:
    """Remember a text; drop the one unused for the longest time if there are too many."""
    known[text] = None
    known.move_to_end(text)
    if len(known) > _MOST_SEEN:
        known.popitem(last=False)


_LETTERS: Final = bytes(0x61 + number % 26 for number in range(256))


@lru_cache(maxsize=4096)
def _class_of(char: int) -> tuple[int, int]:
    return next(pair for pair in _CLASSES if pair[0] <= char < pair[1])


def _octets(number: int) -> range:
    """Return the octets with as many digits as a number."""
    if number < 10:
        return range(10)
    return range(10, 100) if number < 100 else range(100, 256)


def _hex_range(group: int) -> range:
    """Return the IPv6 groups with as many digits as one."""
    if group == 0:
        return range(1)
    digits = (group.bit_length() + 3) // 4
    return range(16 ** (digits - 1), 16**digits)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True
