"""Secrets in bodies are masked, everything else is left alone."""

from __future__ import annotations

from dissectors.remoting.bodies.secrets import without_secrets


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
