"""Headers that are not as Java writes them, and what RocketMQ's own classes make of each.

`odd_headers.json` has what RemotingCommand.decode of three releases answered. Run
`python -m tests.dissectors.remoting.odd_headers` (needs Java) to write it again; `test_java_oracle`
holds it to the classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dissectors.remoting.framing.frame import encode_frame
from tests.cluster.clients.oracle import JavaCommand, Refusal, decode_frames
from tests.cluster.servers.artifacts import NEWEST_4, NEWEST_5

VECTORS = Path(__file__).with_suffix(".json")
RELEASES = (NEWEST_4, "5.3.3", NEWEST_5)
"""fastjson 1.2.69, fastjson 1.2.83, fastjson2"""


def _words(text: str) -> list[str]:
    """The words of a text, with a blank for each `~`."""
    return [word.replace("~", " ") for word in text.split()]


INTEGERS = _words("""
2147483647 2147483648 -2147483648 -2147483649 4294967297 9223372036854775808 -0 05 -05 +5 --5 5L 5S
5B 5F 5D 5l 5f 0x10 1.0 1.5 -1.5 1.9 5. .5 1e3 1E3 1E+3 1e-3 1.5e1 1e10 3000000000.0 1e400 -1e400
true false null NaN undefined Infinity True x [] [1] [1,2] ["1"] ["1.5"] [1.5] [[1]] [null] [true]
{} {"a":1} {"val":5} {"val":"5"} '5' "5" "-5" "+5" "--5" "+-5" "05" "-05" "-0" "" "~" "~5" "5~"
"abc" "null" "NULL" "Null" "true" "false" "0x10" "5L" "1.0" "5.00" "1." "1.5" "-1.5" "1.9" ".5"
"1e3" "1E+3" "1e-3" "1.5e1" "1e10" "1e400" "3000000000.0" "2147483647" "2147483648" "-2147483648"
"-2147483649" "1,000" "1,234,567" "1,5" "1_000" "\u0665" "NaN" "Infinity" "\u0031"
""")
NAMES = _words("""
Code CODE cOdE co_de c-o-d-e _code code_ isCode cod Opaque OPAQUE op_aque Flag FLAG Version VERSION
Language LANGUAGE Remark REMARK
""")
FIELD_NAMES = _words("""
ExtFields EXTFIELDS extfields ext_fields ext-fields Ext-Fields EXT_FIELDS _extFields extFields_
e_x_t_f_i_e_l_d_s extField
""")
TEXTS = _words("""
{"a":1} {"a":1.50} {} [] [1,"a",null] [[],{}] 5 1.50 1e3 -0.0 true false null "null" "" NaN .5
undefined 'x' 12345678901234567890 {a:1} {'a':'x'} [1,] {"a":1e400} {"a":1.10} {"a":007} {"a":null}
{"a":1,"a":2} Set[1] x {"a":"\\u4e2d/\\"\\t\\u0001"} {"a":{"b":[{"c":true}]}}
""")
FIELDS = _words("""
[] [1] ["a"] [{"a":"b"}] "x" "" "null" "{}" null 5 1.5 true {} {"a":1} {"a":1.0} {"a":1.10}
{"a":1e-7} {"a":1e3} {"a":-0.0} {"a":12345678901234567890} {"a":0.1234567890123456789012} {"a":5L}
{"a":5D} {"a":5.50F} {"a":true} {"a":null} {"a":"null"} {"a":[]} {"a":[1,"b",null]} {"a":[2.50]}
{"a":{}} {"a":{"c":1,"b":[true]}} {"a":{"b":null}} {"a":NaN} {"a":undefined} {1:"x"} {a:"x"}
{'a':'x'} {"":"x"} {"a":"x","a":"y"} {"a":"x","a":null} {true:"x"} {{"b":1}:"x"} {"a":x} {"a":.5}
{"a":5.} {"a":"\\x41"} {"a":"\\q"} {"a":'it\\'s'} {"a":"b",} {,"a":"b"} {"a":"b",,"c":"d"}
{"a"="b"} {"A":1,"a":2,"a_":3}
""")
LANGUAGES = _words("""
"java" "Java" "jAvA" "j_ava" "DotNet" "dotnet" "DOT_NET" "go" "Go" "GO" "cpp" "Cpp" "rust" "Rust"
"php" "NODE_JS" "node_js" "NodeJs" "HTTP" "Http" "other" "Xyz" "C++" "" "null" "0" "1" "99" null 0 1
12 13 99 -1 1.0 1.5 5L true [] ["JAVA"] {} {"name":"JAVA"} JAVA 'JAVA' "\\u004aAVA" 2147483648 NaN
""")
SERIALIZATIONS = _words("""
"JSON" "ROCKETMQ" "json" "bad" "" null 0 1 2 5 1.0 true [] {} "1"
""")
AROUND = (
    "", " ", "\n  ", "\t\r\n ", "\f", "\b", "\ufeff", "\v", "\0", "\x1a", "\xa0", "\u3000",
    "/* a */", "// a\n", ",", ";", "x", "{}",
)  # fmt: skip
WHOLE = """
{"Code":310,"ExtFields":{"a":"G"},"Language":"DOTNET","Opaque":1,"Version":453}
{"Code":310,"code":311,"opaque":1}
{"code":310,"Code":311,"opaque":1}
{"code":1,"code":2,"opaque":1}
{"code":310,"opaque":1,"serialize_type_current_rpc":"ROCKETMQ"}
{ "code" : 310 , "opaque" : 1 }
{'code':310,'opaque':1}
{code:310,opaque:1}
{"code":310,"opaque":1,}
{,"code":310,"opaque":1}
{"code":310,,"opaque":1}
{"code":310 "opaque":1}
{"code":310,"opaque":1
{"code":310,"opaque":1,"unknown":[1,{"a":null}],"more":"x"}
{"code":310,"opaque":1,"unknown":x}
{"code":310,"opaque":1,"unknown":"\\q"}
{"code":310,"opaque":1,"@type":"java.lang.Object"}
{"code":310,"opaque":1,"@type":"org.apache.rocketmq.remoting.protocol.RemotingCommand"}
{"opaque":1}
{"code":310}
{}
[]
null
"x"
5
[{"code":310,"opaque":1}]
""".strip().splitlines()


class Answer(NamedTuple):
    """What a release makes of a header; an opaque that it made up itself is None."""

    code: int
    opaque: int | None
    flag: int
    version: int
    language: str | None
    remark: str | None
    ext_fields: dict[str, str | None] | None


def headers() -> Iterator[str]:
    """Every odd header."""
    yield from WHOLE
    for name in ("code", "opaque", "flag", "version"):
        for value in INTEGERS:
            yield _header(f'"{name}":{value}', without=name)
    for name in NAMES:
        letter = name.strip("_")[0].lower()
        value = {"l": '"GO"', "r": '"why"'}.get(letter, "5")
        without = {"c": "code", "o": "opaque"}.get(letter, "")
        yield _header(f'"{name}":{value}', without=without)
    yield from (_header(f'"{name}":{{"a":"G"}}') for name in FIELD_NAMES)
    for name, values in (
        ("remark", TEXTS),
        ("extFields", FIELDS),
        ("language", LANGUAGES),
        ("serializeTypeCurrentRPC", SERIALIZATIONS),
    ):
        yield from (_header(f'"{name}":{value}') for value in values)
    usual = _header('"extFields":{"a":"b"}')
    for text in AROUND:
        yield text + usual
        yield usual + text
    for blank in (" ", "\n", "\t", "\r", "\f", "\b"):
        yield usual.replace(",", f"{blank},{blank}").replace(":", f"{blank}:{blank}")
    for blank in ("\xa0", "\u2028"):
        yield usual.replace(":", f"{blank}:", 1)
        yield usual.replace(":", f":{blank}", 1)


def _header(member: str, without: str = "") -> str:
    """A header with a code and an opaque, unless they are `without`, and a member."""
    others = {"code": 11, "opaque": 7}
    written = [f'"{name}":{value}' for name, value in others.items() if name != without]
    return "{" + ",".join([written[0], member, *written[1:]]) + "}"


def answers_of(release: str, texts: list[str]) -> list[Answer | None]:
    """What a release makes of headers; None where it refuses one."""
    frames = [encode_frame(0, text.encode()) for text in texts]
    found = decode_frames([frame for frame in frames for _ in "12"], release)
    return [_answer_of(*pair) for pair in zip(found[::2], found[1::2], strict=True)]


def _answer_of(first: JavaCommand | Refusal, second: JavaCommand | Refusal) -> Answer | None:
    if isinstance(first, Refusal) or isinstance(second, Refusal):
        return None
    opaque = first.opaque if first.opaque == second.opaque else None
    language = None if str(first.language) == "None" else first.language
    return Answer(first.code, opaque, first.flag, first.version, language, first.remark,
                  first.ext_fields)  # type: ignore[arg-type]  # fmt: skip


def recorded() -> dict[str, list[Answer | None]]:
    """Header → what each of `RELEASES` makes of it."""
    rows = json.loads(VECTORS.read_text())
    return {
        text: [Answer(*one) if one is not None else None for one in found] for text, *found in rows
    }


if __name__ == "__main__":
    TEXTS_OF_ALL = list(dict.fromkeys(headers()))
    COLUMNS = [answers_of(release, TEXTS_OF_ALL) for release in RELEASES]
    ROWS = zip(TEXTS_OF_ALL, *COLUMNS, strict=True)
    LINES = [json.dumps(row) for row in ROWS]
    VECTORS.write_text("[\n" + ",\n".join(LINES) + "\n]\n")
