"""A proxy in front of a sandbox, for tests: both run in threads of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from replay.proxy.options import ProxyOptions
from replay.proxy.proxy import Proxy
from replay.safety import Guard


class ProxyThread:
    """A running proxy."""

    def __init__(self, options: ProxyOptions) -> None:
        self.proxy = Proxy(options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def namesrv(self) -> str:
        """Own address that stands for the NameServers."""
        return self.proxy.namesrv

    def front_of(self, name: str) -> str:
        """Own address that stands for a broker."""
        (front,) = [one for one in self.proxy.fronts.known() if one.name == name]
        return f"{front.host}:{front.port}"

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.proxy.start(), self._loop).result(30)

    def close(self) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self.proxy.close(), self._loop).result(30)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(30)
            self._loop.close()


@contextmanager
def proxied(namesrv: str, **options: Any) -> Iterator[ProxyThread]:
    """Run a proxy of NameServers on a free port; loopback only, unless a guard is given."""
    options.setdefault("guard", Guard(False).why_not)
    running = ProxyThread(ProxyOptions(tuple(namesrv.split(";")), port=0, **options))
    running.start()
    try:
        yield running
    finally:
        running.close()
