"""`rmqtool proxy`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import ProxyRequest


def _run(request: ProxyRequest) -> ExitStatus:
    """Sit between clients and a real cluster: record traffic, inject faults.

    Examples:
      rmqtool proxy -n 10.0.0.5:9876 --allow 10.0.0.0/8
      rmqtool proxy -n 10.0.0.5:9876 --yes --write traffic.pcapng
      rmqtool proxy -n 10.0.0.5:9876 --yes --write - | rmqtool diagnose -

    Then point clients at the NameServer 127.0.0.1:9876. More: rmqtool help proxy.
    """
    from .run import run_proxy_command

    return run_proxy_command(request)


proxy = command_with(ProxyRequest, _run)
