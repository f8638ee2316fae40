"""Secrets in bodies are masked, everything else is left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.bodies.secrets import (
    data_without_secrets,
    text_without_secrets,
    without_secrets,
)
from dissectors.remoting.headers import shown_remark


def test_secrets_are_masked_wherever_they_are() -> None:
    value = {
        "username": "u",
        "password": "p",
        "list": [{"secretKey": "s", "accessKey": "abcdefghijklmnop", "n": 1}],
        "brokerClientSecret": "x",
        "emptyPassword": "",
        "secrets": ["a"],
        "passwords": {"a": "b"},
        "pinPassword": 1234,
        "hasPassword": True,
        "noPassword": None,
        "names": ["b", "secretKey=hidden"],
    }
    assert without_secrets(value) == {
        "username": "u",
        "password": "***",
        "list": [{"secretKey": "***", "accessKey": "abcd***", "n": 1}],
        "brokerClientSecret": "***",
        "emptyPassword": "",
        "secrets": "***",
        "passwords": "***",
        "pinPassword": "***",
        "hasPassword": True,
        "noPassword": None,
        "names": ["b", "secretKey=***"],
    }
    assert value["password"] == "p"
    assert without_secrets([1, "a", None]) == [1, "a", None]
    assert without_secrets("password: hidden") == "password: ***"


def test_topics_may_be_called_like_a_secret() -> None:
    table = {"password-reset": {"perm": 6}, "secrets": [1], "signature": 2}
    assert without_secrets({"topicConfigTable": table}) == {"topicConfigTable": table}
    inner = {"statusTable": {"secret": {"password": "h"}}, "configTable": {"password": "h"}}
    assert without_secrets(inner) == {
        "statusTable": {"secret": {"password": "***"}},
        "configTable": {"password": "***"},
    }


def test_a_password_need_not_be_ascii() -> None:
    data = "x; password=密码123 y".encode()
    assert data_without_secrets(data) == b"x; password=*** y"


def test_secrets_inside_of_texts_are_masked() -> None:
    """As brokers with ACL 2.0 have them in their configuration."""
    value = {
        "innerClientAuthenticationCredentials": '{"accessKey":"inner-access","secretKey":"hidden"}',
        "initAuthenticationUser": '{"username":"admin","password":"hidden"}',
        "rocketmq.client.accessKey": "clients-access",
        "acl.secret-key": "hidden",
        "access_key": "clients-access",
        "note": "the password is kept elsewhere",
    }
    assert without_secrets(value) == {
        "innerClientAuthenticationCredentials": '{"accessKey":"inne***","secretKey":"***"}',
        "initAuthenticationUser": '{"username":"admin","password":"***"}',
        "rocketmq.client.accessKey": "clie***",
        "acl.secret-key": "***",
        "access_key": "clie***",
        "note": "the password is kept elsewhere",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("""{"password":"it's-h","b":"c"}""", """{"password":"***","b":"c"}"""),
        (r'{"password":"a\"h","b":"c"}', '{"password":"***","b":"c"}'),
        (r'{"a":"{\"password\":\"h\\\"h\",\"b\":1}"}', r'{"a":"{\"password\":\"***\",\"b\":1}"}'),
        ('{"password":1234,"b":1}', '{"password":***,"b":1}'),
        ('{"password":["h",{"a":"h}"}],"b":[1]}', '{"password":***,"b":[1]}'),
        ('{"password":{"a":["h', '{"password":***'),
        ('{"password"\n:\n          "h"}', '{"password"\n:\n          "***"}'),
        (
            '{"password":null,"hasPassword":true,"b":1}',
            '{"password":null,"hasPassword":true,"b":1}',
        ),
        (r'["x","password=\"h h\""]', r'["x","password=\"***\""]'),
        (r'{"a":"b: 1\nsecretKey: \"h\"\nc: 1"}', r'{"a":"b: 1\nsecretKey: \"***\"\nc: 1"}'),
        ('{"a":"http://b:1","c":"d@e","f":1}', '{"a":"http://b:1","c":"d@e","f":1}'),
        ('{"config":"secretKey=h"}', '{"config":"secretKey=***"}'),
        ("a=http://u:hidden@host:4317/b", "a=http://u:***@host:4317/b"),
        ("brokerPassword=a, h\nb=1", "brokerPassword=***\nb=1"),
        ("- accessKey: RocketMQ\n  secretKey: a b", "- accessKey: Ro***\n  secretKey: ***"),
    ],
)
def test_a_secret_in_a_text_ends_where_its_value_ends(text: str, shown: str) -> None:
    assert text_without_secrets(text) == shown


_SECRETS = st.sampled_from(("password", "secretKey", "a.my-Secret"))
_HIDDEN = st.text("a1 ,;:'\"{}[]=&\\\n消", max_size=8).map(lambda text: f"HIDDEN{text}HIDDEN")
_VALUES = st.one_of(_HIDDEN, st.lists(_HIDDEN, max_size=2), st.dictionaries(_HIDDEN, _HIDDEN))
_OTHERS: st.SearchStrategy[object] = st.deferred(
    lambda: st.one_of(st.just("kept"), _MEMBERS, _MEMBERS.map(json.dumps))
)
_MEMBERS = st.builds(
    lambda secrets, others: secrets | others,
    st.dictionaries(_SECRETS, _VALUES, max_size=2),
    st.dictionaries(st.sampled_from(("topic", "b")), _OTHERS, max_size=2),
)


@given(_MEMBERS, st.sampled_from((None, 2)), st.integers(0, 200))
def test_what_is_cut_off_shows_no_secret(members: object, indent: int | None, cut: int) -> None:
    """A body that does not decode is shown as text."""
    text = json.dumps(members, indent=indent)
    assert "HIDDEN" not in text_without_secrets(text[: max(0, len(text) - cut)])


def test_the_secret_key_in_a_remark_is_masked() -> None:
    said = "The accessKey=user and secretKey={} cannot be null and length should longer than 6"
    assert shown_remark(said.format("a b")) == said.format("***")
    assert shown_remark(said.format("a,b")) == said.format("***")
    assert shown_remark("no secret") == "no secret"
    assert shown_remark(None) is None


@pytest.mark.slow
def test_masking_takes_time_in_proportion_to_the_text() -> None:
    for text in (
        "a" * 200_000,
        '"' * 200_000,
        "a:" * 100_000,
        'password="' + "\\" * 200_000,
        'password="' * 50_000,
    ):
        assert len(text_without_secrets(f"password {text}")) > 9
