"""Signatures against those of the Java classes and of Java clients; secrets that stay hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay.acl import Credentials, CredentialsError, credentials_of, read_credentials, signature_of
from tests.replay.java_sends import SAMPLES, VECTORS, request_again, sends_of

RIGHTLY_SIGNED = 2
"""sends of the recorded client that has the right secret"""


@pytest.mark.skipif(not VECTORS.exists(), reason="the protocol's test vectors are not here")
def test_the_signature_is_that_of_the_java_class() -> None:
    others = json.loads(VECTORS.read_text())["other"]
    sample = next(v for v in others if v["name"] == "acl_signature")
    fields = {"topic": sample["ext_fields"]["topic"]}
    Credentials(sample["access_key"], sample["secret_key"]).sign(
        fields, sample["body_text"].encode()
    )
    assert fields == sample["ext_fields"]


def _sample_secret() -> str:
    source = Path(__file__).resolve().parents[1] / "cluster" / "scenarios" / "security.py"
    for line in source.read_text().splitlines():
        if "secret" in line.lower() and "=" in line and '"' in line:
            return line.split('"')[1]
    raise AssertionError("the secret of the recorded clients is not where it was")


@pytest.mark.parametrize("name", ["acl-5x.pcap", "acl-4x.pcap"])
def test_our_signed_request_is_what_java_signed(name: str) -> None:
    """The right secret gives Java's signature, of the same fields written by us."""
    signed = [s for s in sends_of(SAMPLES / name) if "Signature" in s.command.ext_fields]
    credentials = Credentials("sampleaccess", _sample_secret())
    equal = 0
    for sent in signed:
        if sent.command.ext_fields["AccessKey"] != "sampleaccess":
            continue
        request = request_again(sent)
        fields = request.fields()
        fields["i"] = sent.command.ext_fields["i"]  # Java's order of the properties
        credentials.sign(fields, request.body)
        equal += fields == sent.command.ext_fields
    assert equal == RIGHTLY_SIGNED  # the others are signed with another secret
    assert equal < len(signed)


def test_signing_again_replaces_the_signature() -> None:
    credentials = Credentials("ak", "sk", "token")
    fields = {"b": "1", "a": "2"}
    credentials.sign(fields, b"body")
    once = dict(fields)
    credentials.sign(fields, b"body")
    assert fields == once
    credentials.sign(fields, b"other")
    assert fields["Signature"] != once["Signature"]
    assert fields["SecurityToken"] == "token"


def test_names_are_sorted_as_java_sorts_them() -> None:
    # U+FF5E sorts after U+1F600 in UTF-16 and before it by code point.
    one = signature_of({"\uff5e": "1", "\U0001f600": "2"}, b"", "k")
    assert one == signature_of({"a": "2", "b": "1"}, b"", "k")


def test_a_secret_is_never_shown() -> None:
    credentials = Credentials("ak", "very-secret", "very-token")
    assert "very" not in repr(credentials) + str(credentials) + f"{credentials}"


def test_credentials_of_the_environment() -> None:
    both = {"ROCKETMQ_ACCESS_KEY": "a", "ROCKETMQ_SECRET_KEY": "s"}
    assert credentials_of(both) == Credentials("a", "s")
    assert credentials_of({**both, "ROCKETMQ_SECURITY_TOKEN": "t"}) == Credentials("a", "s", "t")
    assert credentials_of({}) is None
    for name in both:
        rest = {key: "hidden-value" for key in both if key != name}
        with pytest.raises(CredentialsError, match=name) as raised:
            credentials_of(rest)
        assert "hidden-value" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "accessKey=a\nsecretKey=s=/:x\n",
        "# a comment\naccessKey: a\nsecretKey: s=/:x\naccounts:\n",
        "access_key = 'a'\r\nSECRET-KEY = \"s=/:x\"\r\n",
        "\n  accessKey=a\n! c\n// d\nsecretKey=s=/:x",
    ],
)
def test_credentials_of_a_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text)
    assert read_credentials(str(path)) == Credentials("a", "s=/:x")


@pytest.mark.parametrize(
    "text", ["", "accessKey=a", "secretKey=topsecret", "\0\xff" * 99, "=a\n:b"]
)
def test_a_file_without_both_keys(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.write_text(text, "utf-8")
    with pytest.raises(CredentialsError, match="has no") as raised:
        read_credentials(str(path))
    assert "topsecret" not in str(raised.value)
