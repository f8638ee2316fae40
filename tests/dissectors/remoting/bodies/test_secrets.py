"""Secrets in bodies are masked, everything else is left alone."""

from __future__ import annotations

import pytest

from dissectors.remoting.bodies.secrets import text_without_secrets, without_secrets


def test_secrets_are_masked_wherever_they_are() -> None:
    value = {
        "username": "u",
        "password": "p",
        "list": [{"secretKey": "s", "accessKey": "abcdefghijklmnop", "n": 1}],
        "brokerClientSecret": "x",
        "emptyPassword": "",
        "secrets": ["kept: a list of names"],
    }
    assert without_secrets(value) == {
        "username": "u",
        "password": "***",
        "list": [{"secretKey": "***", "accessKey": "abcd***", "n": 1}],
        "brokerClientSecret": "***",
        "emptyPassword": "",
        "secrets": ["kept: a list of names"],
    }
    assert value["password"] == "p"
    assert without_secrets([1, "a", None]) == [1, "a", None]


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


@pytest.mark.slow
def test_masking_takes_time_in_proportion_to_the_text() -> None:
    for text in ("a" * 200_000, '"' * 200_000, "a:" * 100_000, 'password="' + "\\" * 200_000):
        assert len(text_without_secrets(f"password {text}")) > 9
