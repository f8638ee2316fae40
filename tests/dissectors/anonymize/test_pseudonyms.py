"""Pseudonyms: one-to-one, as long as the names, the same for the same secret."""

from __future__ import annotations

import ipaddress
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.anonymize.pseudonyms import Pseudonyms
from dissectors.remoting.ids.message_ids import (
    RecallHandle,
    decode_recall_handle,
    decode_unique_key,
    encode_recall_handle,
)
from replay.sandbox.injection.injection import InjectionKind
from replay.sandbox.injection.injection_text import FAULT_KEYS

pytestmark = pytest.mark.examples
NAMES = Pseudonyms(b"a secret of 16 b")
OTHER = Pseudonyms(b"another one of16")


@given(st.text(max_size=60))
@example("%RETRY%orders_group")
@example("订单-42 Ünïcode \U0001f600")
@example("[2001:db8::5]:40000 and 10.1.2.3:50000")
def test_a_text_keeps_its_length(text: str) -> None:
    for change in (NAMES.name, NAMES.value, NAMES.remark):
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return
        assert len(change(text).encode()) == size
        assert len(change(text)) == len(text)


def test_short_names_never_become_one() -> None:
    names = ["".join(one) for one in product("abcxyzABC019", repeat=3)]
    assert len({NAMES.name(name) for name in names}) == len(names)


@given(st.text(alphabet="abcdefgh", min_size=1, max_size=30))
def test_a_secret_decides(name: str) -> None:
    assert Pseudonyms(b"a secret of 16 b").name(name) == NAMES.name(name)


def test_another_secret_gives_other_names() -> None:
    assert NAMES.name("OrderCreatedTopic") != OTHER.name("OrderCreatedTopic")
    assert "OrderCreatedTopic" not in (
        NAMES.name("OrderCreatedTopic"),
        OTHER.name("OrderCreatedTopic"),
    )


def test_a_name_is_the_same_inside_of_others() -> None:
    group = NAMES.name("orders")
    assert NAMES.name("%RETRY%orders") == f"%RETRY%{group}"
    assert NAMES.remark("the consumer group[orders] not exist") == (
        f"the consumer group[{group}] not exist"
    )


@given(st.binary(min_size=4, max_size=4), st.binary(min_size=4, max_size=4))
def test_addresses_keep_common_prefixes(one: bytes, other: bytes) -> None:
    first, second = NAMES.address(one), NAMES.address(other)
    assert (first == second) == (one == other)
    same = next((at for at in range(4) if one[at] != other[at]), 4)
    assert first[:same] == second[:same]
    assert len(str(ipaddress.ip_address(first))) == len(str(ipaddress.ip_address(one)))
    assert ipaddress.ip_address(first).is_private == ipaddress.ip_address(one).is_private or (
        one[0] in (192, 198, 203, 100, 169, 172)  # small special ranges inside of public ones
    )


@given(st.binary(min_size=16, max_size=16))
def test_addresses_of_ipv6_keep_their_length(one: bytes) -> None:
    other = NAMES.address(one)
    assert len(ipaddress.IPv6Address(other).compressed) == len(
        ipaddress.IPv6Address(one).compressed
    )


@given(st.integers(0, 65535))
def test_ports_of_servers_stay(port: int) -> None:
    other = NAMES.port(port)
    assert (other == port) if port < 32768 else 32768 <= other <= 65535


def test_ports_never_become_one() -> None:
    assert len({NAMES.port(port) for port in range(65536)}) == 65536


def test_a_key_has_the_pseudonym_of_its_address() -> None:
    address = NAMES.address(bytes((10, 1, 2, 3)))
    key = NAMES.message_id("0A010203282C4E0E2F2A67974F6A0000")
    assert key == f"{address.hex().upper()}282C4E0E2F2A67974F6A0000"
    decoded = decode_unique_key(key)
    assert decoded is not None
    assert NAMES.name("10.1.2.3@4711#99") == f"{ipaddress.ip_address(address)}@4711#99"
    text = f"{ipaddress.ip_address(address)}:{NAMES.port(40000)}"
    assert NAMES.value("10.1.2.3:40000") == text
    offset_id = NAMES.message_id("0A01020300009C400000000000ABCDEF")
    assert offset_id == f"{address.hex()}{NAMES.port(40000):08x}0000000000ABCDEF".upper()


@pytest.mark.parametrize("text", ["true", "17", "-3", "0 1 22;0 2 7", "CLUSTERING", "TAG", "*", ""])
def test_numbers_and_words_of_the_protocol_stay(text: str) -> None:
    assert NAMES.value(text) == text


def test_digits_of_names_are_replaced() -> None:
    assert NAMES.name("4711") != "4711"
    assert NAMES.name("4711").isdigit()


def test_what_is_kept_stays() -> None:
    names = Pseudonyms(b"a secret of 16 b", frozenset(("names", "addresses")))
    assert names.name("orders") == "orders"
    assert names.value("10.1.2.3:40000") == "10.1.2.3:40000"
    assert names.body(b"secret text") != b"secret text"


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        Pseudonyms(b"short")


@pytest.mark.parametrize("secret", ["broker", "12345", "a b"])
@pytest.mark.parametrize("keep", [(), ("remarks",)])
def test_a_secret_key_in_a_remark_is_masked(secret: str, keep: tuple[str, ...]) -> None:
    remark = "The accessKey=admin and secretKey={} cannot be null"
    shown = Pseudonyms(b"x" * 32, frozenset(keep)).remark(remark.format(secret))
    assert shown.partition(" and ")[2] == f"secretKey={'*' * len(secret)} cannot be null"


def test_a_name_in_a_remark_may_be_a_word_of_rocketmq() -> None:
    names = Pseudonyms(b"a secret of 16 b")
    remark = "topic[message] not exist, apply first please! 20240101"
    assert names.remark(remark) == remark
    topic, day = names.name("message"), names.name("20240101")
    assert names.remark(remark) == f"topic[{topic}] not exist, apply first please! {day}"
    assert names.remark("the message is illegal") == "the message is illegal"


@pytest.mark.parametrize(
    "text",
    [
        "[TIMEOUT_CLEAN_QUEUE]broker busy, period in queue: 210ms, size of queue: 3",
        "java.util.concurrent.ConcurrentHashMap.get(ConcurrentHashMap.java:936)",
        "at org.apache.rocketmq.broker.BrokerStartup.main(BrokerStartup.java:60)",
        "at java.base/java.lang.Thread.run(Thread.java:833)",
        "the in-flight messages are up-to-date, 12.5% of 64MB",
    ],
)
def test_words_and_quantities_of_a_remark_stay(text: str) -> None:
    assert Pseudonyms(b"a secret of 16 b").remark(text) == text


def test_classes_of_applications_are_replaced_in_stack_traces() -> None:
    names = Pseudonyms(b"a secret of 16 b")
    said = names.remark("at com.acme.PaymentListener.consume(PaymentListener.java:42)")
    assert "Payment" not in said
    assert said.endswith(".java:42)")


@pytest.mark.parametrize(
    "of_request", ["SEND_MESSAGE_V2 to ", "PULL_MESSAGE of ", "request 310 of "]
)
def test_words_of_injected_faults_stay_and_names_do_not(of_request: str) -> None:
    names = Pseudonyms(b"a secret of 16 b")
    text = f"{' '.join(InjectionKind)} {'=1 '.join(FAULT_KEYS)}, 20.0ms later: {of_request}"
    assert names.fault(f"{text}Orders") == text + names.name("Orders")


@pytest.mark.parametrize("name", ["order_group", "%RETRY%order_group", "consumer-topic"])
def test_a_name_made_of_words_is_replaced_in_a_remark(name: str) -> None:
    names = Pseudonyms(b"a secret of 16 b")
    said = names.remark(f"no consumer for this group, {name} not exist")
    assert said == f"no consumer for this group, {names.name(name)} not exist"
    assert name not in said


def test_a_kept_kind_stays_everywhere_and_nothing_else_does() -> None:
    names = Pseudonyms(b"a secret of 16 b", frozenset(("groups",)))
    assert names.learns
    assert names.name("billing", "consumerGroup") == "billing"
    assert names.name("%RETRY%billing", "topic") == "%RETRY%billing"
    assert names.remark("no route for %RETRY%billing") == "no route for %RETRY%billing"
    assert names.name("invoices", "topic") != "invoices"


@pytest.mark.parametrize(
    ("address", "port"),
    [("2001:470:0:1:20:30:40:50", 43210), ("2001:470::5", 10911), ("2001:470::5", 54321)],
)
def test_a_port_may_follow_an_ipv6_address_without_brackets(address: str, port: int) -> None:
    new = f"{NAMES.value(address)}:{NAMES.port(port)}"
    assert NAMES.value(address) != address
    assert NAMES.value(f"{address}:{port}") == new
    assert NAMES.remark(f"connect to <{address}:{port}> failed") == f"connect to <{new}> failed"


@pytest.mark.parametrize(
    "text", ["\uff75\uff70\uff80\uff9e\uff70", "\uff21\uff22\uff23", "\ufe8e\ufefc"]
)
def test_letters_in_other_forms_are_replaced(text: str) -> None:
    new = NAMES.name(text)
    assert not set(new) & set(text)
    assert len(new.encode()) == len(text.encode())


def test_a_name_in_use_is_not_forgotten_for_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissectors.anonymize.pseudonyms._MOST_SEEN", 100)
    names = Pseudonyms(b"a secret of 16 b")
    topic = names.name("message")
    for number in range(1000):
        names.name(f"key-{number}")
        names.name("message")
    assert names.is_seen("message")
    assert not names.is_seen("key-0")
    assert names.remark("topic[message] not exist") == f"topic[{topic}] not exist"


@pytest.mark.parametrize("request_", ["SEND_MESSAGE_V2 to", "PULL_MESSAGE of", "request 310 of"])
def test_the_topic_of_an_injected_fault_may_be_a_word_of_rmqtool(request_: str) -> None:
    names = Pseudonyms(b"a secret of 16 b")
    assert names.fault(f"busy: {request_} order") == f"busy: {request_} {names.name('order')}"
    kept = Pseudonyms(b"a secret of 16 b", frozenset(("topics",)))
    assert kept.fault(f"busy: {request_} order") == f"busy: {request_} order"


def test_addresses_in_ids_change_if_names_stay_and_addresses_do_not() -> None:
    names = Pseudonyms(b"a secret of 16 b", frozenset(("names",)))
    for text in ("CB00710700002A9F0000000000ABCDEF", "CB007107282C4E0E2F2A67974F6A0000"):
        new = names.message_id(text)
        assert new == NAMES.message_id(text) != text
        assert names.remark(f"no message {text}, order") == f"no message {new}, order"
        handle = RecallHandle("v1", "Orders", "broker-a", 1795808898000, text)
        recalled = names.recall_handle(encode_recall_handle(handle))
        assert decode_recall_handle(recalled) == handle._replace(unique_key=new)
    mac = "01980DE9A1B2C3D4E5F60718293A4B5C6D"
    assert names.message_id(mac) == mac
    both = Pseudonyms(b"a secret of 16 b", frozenset(("names", "addresses")))
    assert both.message_id(text) == text
    assert both.recall_handle(encode_recall_handle(handle)) == encode_recall_handle(handle)


@pytest.mark.parametrize("text", ["order@Account", "%LMQ%order", "group#order"])
def test_joined_names_of_a_remark_are_replaced(text: str) -> None:
    names = Pseudonyms(b"a secret of 16 b")
    assert names.remark(f"[{text}] not exist, 50% of 99%") == f"[{text}] not exist, 50% of 99%"
    for name in ("order", "Account", "50", "of"):
        names.name(name)
    new = names.name(text)
    assert names.remark(f"[{text}] not exist, 50% of 99%") == f"[{new}] not exist, 50% of 99%"
    assert "order" not in new


@pytest.mark.parametrize("text", ["203.0.113.7_1234", "IP_203.0.113.7", "203.0.113.7.4711"])
def test_joined_addresses_are_replaced(text: str) -> None:
    for change in (NAMES.remark, NAMES.value):
        assert "203.0.113.7" not in change(text)
