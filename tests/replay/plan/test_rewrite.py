"""Rules and functions that change messages."""

from __future__ import annotations

import importlib.util
import os
import py_compile
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.patterns import Effort
from replay.message import Message
from replay.plan.rewrite import (
    Rewrite,
    RewriteError,
    Rewritten,
    apply_rules,
    read_rewrite_files,
    rewrite_of,
    rules_of,
)

MESSAGE = Message(
    "Orders", b'{"card":"4711","x":1}', "v1-paid", "k-1 k-2", {"UNIQ_KEY": "U", "tenant": "acme"}
)


def apply(folder: Path, text: str, message: Message = MESSAGE) -> Rewritten | None:
    path = folder / "rules.toml"
    path.write_text(text)
    return rewrite_of(read_rewrite_files([str(path)])).apply(message, "producers")


def test_every_part_can_be_rewritten(tmp_path: Path) -> None:
    found = apply(
        tmp_path,
        r"""
        [[rule]]
        topic = { match = "^", replace = "test_" }
        group = "replayers"
        tag = { match = "^v1-", replace = "" }
        key = { match = '\d', replace = "0" }
        body = { match = '"card":"(\d)\d*"', replace = '"card":"\1***"' }
        property = { tenant = "test", added = "1" }
        """,
    )
    properties = {"UNIQ_KEY": "U", "tenant": "test", "added": "1"}
    body = b'{"card":"4***","x":1}'
    expected = Message("test_Orders", body, "paid", "k-0 k-0", properties)
    assert found == (expected, "replayers")
    assert MESSAGE.properties["tenant"] == "acme", "the message itself stays as it was"


def test_a_rule_is_for_what_fits_all_its_conditions(tmp_path: Path) -> None:
    text = """
    [[rule]]
    if = { topic = "^Ord", tag = "paid", group = "^prod", body = "card", property.tenant = "acme" }
    topic = "Fit"
    """
    found = apply(tmp_path, text)
    assert found is not None
    assert found.message.topic == "Fit"
    for other in (
        replace(MESSAGE, topic="Pord"),
        replace(MESSAGE, tags=None),
        replace(MESSAGE, body=b"none"),
        replace(MESSAGE, properties={}),
    ):
        same = apply(tmp_path, text, other)
        assert same is not None
        assert same.message == other


def test_rules_follow_one_another_and_may_remove_and_drop(tmp_path: Path) -> None:
    found = apply(
        tmp_path,
        """
        [[rule]]
        tag = false
        key = false
        property.tenant = false
        topic = "Second"
        [[rule]]
        if.topic = "^Second$"
        body = "nothing"
        """,
    )
    assert found is not None
    assert found.message == Message("Second", b"nothing", None, None, {"UNIQ_KEY": "U"})
    assert apply(tmp_path, '[[rule]]\nif.topic = "Orders"\ndrop = true') is None


def test_a_body_need_not_be_text(tmp_path: Path) -> None:
    message = replace(MESSAGE, body=b"\xff\x00card\xfe")
    found = apply(tmp_path, "[[rule]]\nbody = { match = 'card', replace = 'ä' }", message)
    assert found is not None
    assert found.message.body == b"\xff\x00\xc3\xa4\xfe"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rule = 1", "list of"),
        ("[[rules]]\ntopic = 'x'", "unknown key 'rules'"),
        ("[[rule]]\ntopik = 'x'", "unknown key 'topik'"),
        ("[[rule]]\nif.topic = 'x'", "changes nothing"),
        ("[[rule]]\nif.topic = '('\ntag = 'x'", "invalid regular expression"),
        ("[[rule]]\nif.colour = 'x'\ntag = 'x'", "unknown key 'colour'"),
        ("[[rule]]\ntopic = { match = 'x' }", "match = "),
        ("[[rule]]\ntopic = { match = 'x', replace = '\\2' }", "invalid replace"),
        ("[[rule]]\nproperty.UNIQ_KEY = 'x'", "--ids"),
        ("[[rule]]\nproperty.TAGS = 'x'", "use tag"),
        ("[[rule]]\ntopic = false", "give a text"),
        ("[[rule]]\ndrop = 'yes'", "true or false"),
        ("[[rule", "not a TOML file"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(RewriteError, match=r"rules\.toml") as error:
        apply(tmp_path, text)
    assert says in str(error.value)


def test_no_such_file() -> None:
    with pytest.raises(RewriteError, match="No such file"):
        read_rewrite_files(["/nowhere/rules.toml"])


def function(folder: Path, body: str) -> Rewrite:
    path = folder / "change.py"
    path.write_text(f"def change(message):\n    {body}\n")
    return rewrite_of(read_rewrite_files([f"{path}:change"]))


def test_a_function_changes_or_drops(tmp_path: Path) -> None:
    changed = function(tmp_path, "message.properties['n'] = '1'; return message")
    found = changed.apply(MESSAGE, "g")
    assert found is not None
    assert found.message.properties["n"] == "1"
    assert "n" not in MESSAGE.properties
    assert function(tmp_path, "return None").apply(MESSAGE, "g") is None


def test_a_function_that_fails_says_where(tmp_path: Path) -> None:
    with pytest.raises(RewriteError, match="change, message U: ZeroDivisionError"):
        function(tmp_path, "1 / 0").apply(MESSAGE, "g")
    with pytest.raises(RewriteError, match="returned str"):
        function(tmp_path, "return 'x'").apply(MESSAGE, "g")


@pytest.mark.parametrize("name", ["topic", "group"])
def test_the_name_of_the_file_allows_nothing(name: str) -> None:
    with pytest.raises(RewriteError, match="give a text"):
        rules_of(f"[[rule]]\n{name} = false".encode(), "property-rules.toml")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("body = None", "body must be bytes, not None"),
        ("body = 'text'", "body must be bytes, not a value of type str"),
        ("properties = None", "properties must be a dict of str, not None"),
        ("properties['n'] = 1", "property 'n' must be a str, not a value of type int"),
    ],
)
def test_a_function_that_gives_a_field_another_type(
    tmp_path: Path, change: str, reason: str
) -> None:
    changed = function(tmp_path, f"message.{change}; return message")
    with pytest.raises(RewriteError, match=f"^change, message U: {reason}$"):
        changed.apply(MESSAGE, "g")


def test_a_function_may_keep_what_no_send_can_have(tmp_path: Path) -> None:
    message = replace(MESSAGE, flag=1 << 40)
    found = function(tmp_path, "return message").apply(message, "g")
    assert found is not None
    assert found.message == message


@pytest.mark.parametrize("text", ["change.py", "nowhere.py:change", "{path}:other", "{bad}:change"])
def test_a_function_that_is_not_there(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text("change = 1\n")
    (tmp_path / "bad.py").write_text("import nowhere_at_all\n")
    name = text.format(path=tmp_path / "a.py", bad=tmp_path / "bad.py")
    with pytest.raises(RewriteError):
        rewrite_of(read_rewrite_files([name]))


def test_the_code_that_runs_is_that_of_the_file_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "change.py"
    path.write_text("def change(message):\n    raise ValueError('compiled')\n")
    py_compile.compile(str(path), doraise=True)
    cached = Path(importlib.util.cache_from_source(str(path)))
    times = path.stat().st_mtime_ns
    path.write_text("def change(message):\n    return message #############\n")
    os.utime(path, ns=(times, times))
    assert cached.exists()
    assert rewrite_of(read_rewrite_files([f"{path}:change"])).apply(MESSAGE, "g") is not None


def test_a_digest_tells_functions_and_rules_apart(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def one(m): return m\ndef two(m): return None\n")
    (tmp_path / "a.toml").write_text("[[rule]]\ndrop = true\n")
    names = [f"{tmp_path}/a.py:one", f"{tmp_path}/a.py:two", f"{tmp_path}/a.toml"]
    digests = {read_rewrite_files([name]).digest for name in names}
    assert len(digests) == 3
    assert read_rewrite_files([]).digest == ""


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rules.toml")
    with pytest.raises(RewriteError, match="not a regular file"):
        read_rewrite_files([str(tmp_path / "rules.toml")])


HANG = "[[rule]]\nif.topic = 'O'\nbody = { match = '(x+x+)+y', replace = '' }"


def test_a_pattern_that_would_backtrack_for_ever_does_not(tmp_path: Path) -> None:
    slow = replace(MESSAGE, body=b"x" * 500_000)
    effort = Effort(seconds=1)
    assert apply_rules(rules_of(HANG.encode(), "theirs.toml"), slow, "g", effort) == (slow, "g")
    assert effort.searches == 2


def test_the_work_of_all_rules_for_a_message_is_bounded_together() -> None:
    again = "[[rule]]\nbody = { match = 'x.*y|x', replace = 'x' }\n" * 100
    slow = replace(MESSAGE, body=b"x" * 300_000)
    with pytest.raises(
        RewriteError, match=r"theirs\.toml, rule 1: message U took more than 0\.2 s"
    ):
        apply_rules(rules_of(again.encode(), "theirs.toml"), slow, "g", Effort(seconds=0.2))


def test_a_message_does_not_grow_without_end() -> None:
    text = "[[rule]]\nbody = { match = '', replace = '%s' }" % ("x" * 1000)
    large = replace(MESSAGE, body=b"y" * 100_000)
    with pytest.raises(RewriteError, match=r"rule 1: message U becomes more than 16 MiB"):
        apply_rules(rules_of(text.encode(), "theirs.toml"), large, "g")


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)", "(?<!a)b"])
def test_what_is_not_linear_is_refused_with_another_way(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(RewriteError, match=r"use a function instead: --rewrite FILE\.py:FUNCTION"):
        apply(tmp_path, f"[[rule]]\nkey = {{ match = '{pattern}', replace = '' }}")


def test_half_characters_stay_as_they_are(tmp_path: Path) -> None:
    odd = replace(MESSAGE, tags=None, properties={"half": "\udc80\ud800"}, wait_store_ok=None)
    rules = "[[rule]]\nkey = { match = '-', replace = '+' }\nproperty.half = { match = 'x', "
    found = apply(tmp_path, rules + "replace = 'y' }", odd)
    assert found == (replace(odd, keys="k+1 k+2"), "producers")


def test_a_character_is_a_character_in_bodies_too(tmp_path: Path) -> None:
    message = replace(MESSAGE, body="grün, blöd".encode())
    found = apply(tmp_path, "[[rule]]\nbody = { match = '[äöü]', replace = '.' }", message)
    assert found is not None
    assert found.message.body == b"gr.n, bl.d"
