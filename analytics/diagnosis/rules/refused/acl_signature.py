"""A client is refused because of its signature, account, or permissions."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msgspec.structs import replace

from dissectors.endpoint import host_of
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.names import ACCOUNT, fact_in
from dissectors.remoting.topic_names import INNER_PRODUCER, PROXY_HEARTBEATS
from dissectors.rows.record import ExchangeRecord

from ...context import PROXY, Context
from ...names import counted_names, listed, only, subject_of
from ...problem import Case, ProblemSeverity, Subject, first_line
from ...refusals import Refusals
from ...rule import COVERED, DiagnosisRule, Exchanges

_CODES: Final = frozenset((int(ResponseCode.SYSTEM_ERROR), int(ResponseCode.NO_PERMISSION)))
"""1 from ACL 1.0 (AclException), 16 from ACL 2.0 (AuthenticationException,
AuthorizationException)"""
_CALL_CODES: Final = frozenset((40100, 40300))
"""UNAUTHORIZED and FORBIDDEN of a proxy, in gRPC"""
_CLIENT: Final = "client"
_ACCOUNT: Final = "account"
_SHOWN: Final = "shown"


class _Reason(NamedTuple):
    """The reason of a refusal, from the remark; `{0}` is the name in it."""

    id: str
    pattern: re.Pattern[str]
    said: str
    advice: str


_ACCOUNTS: Final = (
    " ACL 1.0 (4.4.0 to 5.3.2; aclEnable, default false) reads accounts from conf/plain_acl.yml."
    " ACL 2.0 (since 5.3.0; authenticationEnabled and authorizationEnabled, default false) keeps"
    " them in the broker: mqadmin createUser, createAcl."
)
_PROXY_ADVICE: Final = (
    "Set innerClientAuthenticationCredentials (accessKey and secretKey of an account that the"
    " brokers know, with rights for all topics and groups) in rmq-proxy.json: the proxy itself is"
    " refused, not one of its clients."
)
# The first match counts: the last pattern fits many of these remarks.
_REASONS: Final = (
    _Reason(
        "signature",
        re.compile(r"Check signature failed for accessKey=([^,\s]{1,128})"),
        "the signature of account {0} is wrong",
        "Set the client's secret key to the one that the broker has for account {0}.",
    ),
    _Reason(
        "signature",
        re.compile(r"check signature failed\.()"),
        "the signature is wrong",
        "Set the client's secret key to the one that the broker has.",
    ),
    _Reason(
        "unsigned",
        re.compile(
            r"(?:No accessKey is configured|username cannot be null"
            r"|authentication header is incorrect)()"
        ),
        "they have no signature",
        "Give the client an account: AclClientRPCHook with SessionCredentials, or"
        " setCredentialProvider for a gRPC client.",
    ),
    _Reason(
        "unknown",
        re.compile(r"No acl config for ([^,\s]{1,128})"),
        "the broker does not know account {0}",
        "Create account {0} on all brokers, or correct the access key in the client.",
    ),
    _Reason(
        "unknown",
        re.compile(r"User:([^\s]{1,128}) (?:is )?not found"),
        "the broker does not know account {0}",
        "Create account {0}, or correct the access key in the client.",
    ),
    _Reason(
        "unknown",
        re.compile(r"No PlainAccessResource for accessKey=([^,\s]{1,128})"),
        "the broker does not know account {0}",
        "Create account {0} on all brokers, or correct the access key in the client.",
    ),
    _Reason(
        "disabled",
        re.compile(r"User:([^\s]{1,128}) is disabled"),
        "account {0} is disabled",
        "Enable account {0} (mqadmin updateUser), or use another one.",
    ),
    _Reason(
        "admin",
        re.compile(r"Need admin permission for request code=\d+, but accessKey=([^,\s]{1,128})"),
        "account {0} is not an administrator",
        "Use an account with admin: true for such requests.",
    ),
    _Reason(
        "rights",
        re.compile(r"No default permission for ([^\n]{1,200}?)(?:, org\.|$)", re.MULTILINE),
        "the account may not use {0}",
        "Give the account the right (PUB to send, SUB to consume) for {0}.",
    ),
    _Reason(
        "rights",
        re.compile(r"(\S{1,128} has no permission to access \S{1,200})"),
        "{0}",
        "Give the account the right (Pub to send, Sub to consume) with mqadmin updateAcl.",
    ),
    _Reason(
        "other",
        re.compile(r"(AclException|Authentication failed\.|Authorization failed\.)"),
        "the broker's access control says: {0}",
        "Look for the account and its rights on the broker.",
    ),
)


def reason_of(remark: str | None) -> tuple[_Reason, str] | None:
    """Return why access control refused a request, with the name in the remark, or None."""
    if not remark:
        return None
    for reason in _REASONS:
        match = reason.pattern.search(remark)
        if match is not None:
            return reason, first_line(remark) if reason.id == "other" else match[1]
    return None


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in ("::1", "localhost")


class _Fold(Refusals):
    def take(self, row: ExchangeRecord) -> None:
        self.note_name(_CLIENT, row.client_id)
        self.note_name(_ACCOUNT, fact_in(row.facts, ACCOUNT))
        self.note_name(_SHOWN, row.remark)

    def subject(self, context: Context) -> Subject:
        named = self.named(_CLIENT) or {context.client(address) for address in self.clients}
        # A heartbeat names all groups of a client, joined, and the client's own producer.
        groups = {name for name in self.groups if name != INNER_PRODUCER and "," not in name}
        subject = subject_of(self.brokers, context, only(self.topics), only(groups))
        return replace(subject, client=only(named))

    def title(self, context: Context) -> str:
        servers = listed(map(context.server, self.brokers))
        clients = self.named(_CLIENT)
        refused_clients = (
            listed(clients) if clients else listed(host_of(address) for address in self.clients)
        )
        refused_clients = f"proxy {refused_clients}" if self._is_proxy(context) else refused_clients
        return f"{servers} refused {self.what} from {refused_clients}: {self._why()}"

    def details(self, context: Context) -> list[str]:
        pointless = ", and refused each time: retries are pointless"
        return [
            *super().details(context),
            f"requests: {counted_names(self.requests)}",
            *self.again_lines(context, "sent", pointless),
        ]

    def judge(self, case: Case, context: Context) -> None:
        found = self._reason()
        if found is not None:
            reason, name = found
            advice = _PROXY_ADVICE if self._is_proxy(context) else reason.advice.format(name)
            case.advice = advice + _ACCOUNTS

    def _is_proxy(self, context: Context) -> bool:
        """Return whether a proxy sent the request: by its kind, or from the address of a proxy."""
        if PROXY_HEARTBEATS in self.topics or any(
            PROXY_HEARTBEATS in group for group in self.groups
        ):
            return True
        proxies = {host_of(address) for address, role in context.servers.items() if role == PROXY}
        asked = {host_of(address) for address in self.clients}
        # On loopback, proxy and clients share the address.
        return bool(asked) and asked <= proxies and not any(map(_is_loopback, asked))

    def _why(self) -> str:
        refusal = self._reason()
        if refusal is None:
            return "access control"
        reason, name = refusal
        reason_text = reason.said.format(name)
        accounts = self.named(_ACCOUNT)
        if reason.id == "signature" and not name and accounts:
            reason_text = f"the signature of account {listed(accounts)} is wrong"
        if self.tally.count == 1:
            reason_text = reason_text.replace("they have", "it has")
        return reason_text

    def _reason(self) -> tuple[_Reason, str] | None:
        remarks = self.named(_SHOWN)
        # All remarks of a key have the same reason: the smallest, whatever the order of rows.
        return reason_of(min(remarks)) if remarks else None


def _key(row: ExchangeRecord) -> str | None:
    reason = reason_of(row.remark)
    return None if reason is None else f"{reason[0].id} {reason[1]}"


RULE = DiagnosisRule(
    id="acl-signature",
    severity=ProblemSeverity.ERROR,
    title="A client is refused because of its signature, account, or permissions",
    searched=(
        "AclException Check signature failed for accessKey=",
        "No accessKey is configured",
        "No acl config for",
        "No default permission for",
        "User is not found",
        "has no permission to access",
        "Authentication failed. Please verify the credentials and try again.",
        "authentication header is incorrect",
        "No PlainAccessResource for accessKey",
        "Need admin permission for request code",
    ),
    proof=(
        "Response code 1 with `AclException` (ACL 1.0), or code 16 with a remark about"
        " authentication or authorization (ACL 2.0, since 5.3.0)."
    ),
    explanation=(
        "If access control is on, a client signs each request with the secret key of its account."
        " The broker recomputes the signature, then checks what the account may do. It refused for"
        " the reason in the remark. Producers retry after these codes, but every broker has the"
        " same accounts, so retries are pointless."
    ),
    advice="Compare the account, secret key, and rights of client and broker." + _ACCOUNTS,
    grpc=COVERED,
    fold=_Fold,
    exchanges=(Exchanges(key=_key, responses=_CODES | _CALL_CODES),),
    references=(
        "apache/rocketmq#6187",
        "apache/rocketmq#1216",
        "apache/rocketmq#403",
        "apache/rocketmq#1696",
        "alibaba/canal#5137",
        "apache/rocketmq-externals#458",
        "NewLifeX/NewLife.RocketMQ#89",
    ),
    limits=(
        "The response does not say why a signature is wrong: the secret key is wrong, or the"
        " request was changed after it was signed."
    ),
    lasts=None,
)
