"""`rmqtool codes`: meaning of wire numbers and names, from the decoder's own tables."""

from __future__ import annotations

import json
import sys

from ..ui.console import When, terminal_of
from ..ui.status import CommandError, ExitStatus
from .as_json import value_of
from .options import CodesFormat, CodesRequest
from .search import Query, SearchResult, find, number_of, query_of, suggestions
from .text import detail_lines, list_lines

_EXAMPLES = "rmqtool codes 310, rmqtool codes response 17, rmqtool codes UNIQ_KEY"


def run_codes(request: CodesRequest) -> ExitStatus:
    """Show the matches of a query, or all entries; raise CommandError without a match."""
    for word in request.query:
        # The parser leaves unknown options here, because a negative number looks like one.
        if word.startswith("-") and number_of(word) is None:
            raise CommandError(f"no such option: {word}", status=ExitStatus.USAGE)
    query = query_of(" ".join(request.query), request.kind)
    result = find(query)
    if not result.entries:
        raise _nothing(query)
    if request.format is CodesFormat.json:
        print(json.dumps([value_of(entry) for entry in result.entries], indent=2))
    else:
        print("\n".join(_lines(result, request.colour)))
    return ExitStatus.OK


def _lines(result: SearchResult, colour: When) -> list[str]:
    terminal = terminal_of(sys.stdout, colour)
    if result.exact or len(result.entries) == 1:
        return detail_lines(result.entries, result.alike, terminal)
    return list_lines(result.entries, terminal)


def _nothing(query: Query) -> CommandError:
    examples = f"for example: {_EXAMPLES}"
    if number_of(query.text) is not None:
        return CommandError(f"unknown {query.kind or 'code'} {query.text}", examples)
    near = suggestions(query)
    hint = f"did you mean {', '.join(near)}?" if near else examples
    kind = f"{query.kind} " if query.kind else ""
    return CommandError(f"no {kind}match for {query.text!r}", hint)
