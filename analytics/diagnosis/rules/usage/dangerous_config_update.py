"""Someone changes settings that allow running commands on a broker or NameServer."""

from __future__ import annotations

from typing import Final

from dissectors.endpoint import host_of
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import SETTING, facts_in
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import SUCCESS, joined_key, parts_of
from ...names import Names, counted_names, times
from ...problem import Case, ProblemSeverity, Subject, asked
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, TallyFold

UPDATE_BROKER: Final = int(RequestCode.UPDATE_BROKER_CONFIG)
UPDATE_NAMESRV: Final = int(RequestCode.UPDATE_NAMESRV_CONFIG)
DANGEROUS: Final = {
    UPDATE_BROKER: frozenset(
        ("rocketmqHome", "filterServerNums", "configStorePath", "brokerConfigPath")
    ),
    UPDATE_NAMESRV: frozenset(
        ("rocketmqHome", "configStorePath", "configStorePathName", "kvConfigPath")
    ),
}
"""CVE-2023-33246 (FilterServerManager), CVE-2023-37582 (Configuration.persist)"""


class _Fold(TallyFold):
    """Changes by one host at one server."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.settings = Names()
        self.accepted = 0
        self.refused = 0

    def add_exchange(self, row: ExchangeRecord) -> None:
        names = dangerous_of(row)
        self.tally.add(asked(row, f"{row.request_name} sets {', '.join(names)}"))
        for name in names:
            self.settings.note(name)
        if row.response_code == SUCCESS:
            self.accepted += 1
        elif row.response_code is not None:
            self.refused += 1

    def case(self, context: Context) -> Case:
        count = self.tally.count
        host, server = parts_of(self.key)
        name = context.broker(server)
        settings = ", ".join(sorted(self.settings))
        if self.accepted:
            title = f"{host} changed {settings} of {name}, {times(self.accepted)}"
        elif self.refused == count:
            title = f"{host} tried to change {settings} of {name}, {times(count)}; it was refused"
        else:
            title = f"{host} asked to change {settings} of {name}, {times(count)}"
        case = self.tally.case(
            f"{title}: attackers can use these settings to run commands",
            Subject(broker=name, client=host),
        )
        if not self.accepted:
            case.severity = ProblemSeverity.WARNING
            if self.refused < count:
                case.doubt("whether the server did it was not captured")
        case.details.append(f"requests by setting: {counted_names(self.settings)}")
        return case


def dangerous_of(row: ExchangeRecord) -> list[str]:
    """Return the dangerous settings that a request changes."""
    known = DANGEROUS.get(row.request_code or 0, frozenset())
    return [name for name in facts_in(row.facts, SETTING) if name in known]


def _host_and_server(row: ExchangeRecord) -> str | None:
    if not row.facts or not dangerous_of(row):
        return None
    return joined_key(host_of(row.client_address), row.server_address)


RULE = DiagnosisRule(
    id="dangerous-config-update",
    severity=ProblemSeverity.ERROR,
    title="Settings that allow attackers to run commands are changed",
    searched=(
        "CVE-2023-33246",
        "CVE-2023-37582",
        "rocketmqHome filterServerNums",
        "updateConfig attack",
    ),
    proof=(
        "UPDATE_BROKER_CONFIG (25) that sets rocketmqHome, filterServerNums, configStorePath, or"
        " brokerConfigPath, or UPDATE_NAMESRV_CONFIG (318) that sets configStorePath,"
        " configStorePathName, kvConfigPath, or rocketmqHome. The values are not shown."
    ),
    explanation=(
        "Brokers of 4.x up to 4.9.5 and of 5.x up to 5.1.0 start filterServerNums programs from"
        " rocketmqHome: whoever can set both can run commands there (CVE-2023-33246). A NameServer"
        " up to 4.9.6 or 5.1.1 writes its configuration to the given path, so any file can be"
        " overwritten (CVE-2023-37582). Attackers scan for open ports and do this; operators rarely"
        " have a reason to."
    ),
    advice=(
        "Block the named address, look for unknown processes and cron jobs, and rebuild the machine"
        " from scratch: the server may be compromised. Update at least to 4.9.7 or 5.1.2, which"
        " close both holes. Keep ports 9876, 10909, and 10911 off public networks and turn access"
        " control on (aclEnable before 5.3.0, authenticationEnabled since). (A change that you made"
        " yourself needs no action.)"
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(Exchanges(key=_host_and_server, requests=frozenset(DANGEROUS)),),
    limits=(
        "With TLS, the request is not visible. The capture does not show whether a command was run."
    ),
    lasts=None,
)
