"""Parsing of tests from answers that arrive in random pieces: `make fuzz-arrivals`.

    python -m fuzz.arrivals --splits 1000000 --seed 1

A split is a position at which an answer was cut in two, possibly inside a character or an escape. Each
answer is cut as text, where every test has to appear as soon as its last bracket does, and as the bytes
that a provider sends. Cases depend on the seed alone, so that a run can be repeated.
"""

from __future__ import annotations

import itertools
from random import Random
from typing import TYPE_CHECKING, Any

from fuzz.driver import Fuzzer
from peripety.gateway.types.message import ChatMessage, ChatRole
from peripety.gateway.types.response import Completion, StopReason, TextDelta, ToolCallDelta, Usage
from peripety.llmsim.types import SimStopReason, TextPart, ToolUsePart
from peripety.testgen.prompts.stream_parser import (
    GENERATE_TEST_TOOL,
    DraftStreamParser,
    TestForm,
    UnreadablePart,
    parse_draft,
)
from peripety.testgen.types import DraftTest
from support.gateway.providers import HTTP_PROVIDERS, Asked, models_of
from support.gateway.requests import asking, call_of
from support.llmsim.simulator import reply
from support.testgen.suites import as_json, random_test, written_tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.gateway.types.response import GatewayEvent
    from support.testgen.suites import WrittenTests


SPLITS_OF_CASE = 250
CASES_IN_BATCH = 20
_FORM = TestForm(None, None)


def compare_arrivals(seed: int, number: int) -> str | None:
    """Cut one random answer; what is read otherwise than it was written, if anything is."""
    random = Random(f"{seed}:arrivals:{number}")
    values = [random_test(random) for _ in range(random.randrange(1, 6))]
    whole = random.choice((None, None, random.randrange(len(values))))
    written = written_tests(random, values, whole=whole)
    for what, told in (
        ("as a list", _listed(random, written, is_cut=whole is not None)),
        ("as calls", _called(random, values)),
        ("as bytes", _through_a_provider(random, values)),
    ):
        if told is not None:
            return f"{what}: {told}\n  {written.text!r}"
    return None


def _listed(random: Random, written: WrittenTests, *, is_cut: bool) -> str | None:
    arrivals, seen = DraftStreamParser(), 0
    drafts: list[DraftTest | UnreadablePart] = []
    for piece in _pieces(random, written.text):
        seen += len(piece)
        drafts += arrivals.feed(TextDelta(piece))
        due = sum(end <= seen for end in written.ends)
        if len(drafts) != due:
            return f"{len(drafts)} of {due} tests after {seen} characters"
    drafts += arrivals.finish(_completion(written.text))
    told = [draft for draft in drafts if isinstance(draft, DraftTest)]
    if len(drafts) - len(told) != is_cut:
        return f"{len(drafts) - len(told)} parts are no tests"
    return _difference(told, written.values)


def _called(random: Random, values: Sequence[dict[str, Any]]) -> str | None:
    """Calls that grow at the same time."""
    events: list[list[GatewayEvent]] = []
    for number, value in enumerate(values):
        pieces = [*_pieces(random, as_json(random, value))]
        names = [GENERATE_TEST_TOOL, *[""] * (len(pieces) - 1)]
        events.append([ToolCallDelta(f"c{number}", *one) for one in zip(pieces, names, strict=True)])
    arrivals, drafts = DraftStreamParser(), {}
    while events:
        growing = random.choice(events)
        event = growing.pop(0)
        for draft in arrivals.feed(event):
            drafts[event.call_id] = (draft, not growing)  # type: ignore[union-attr]
        events = [each for each in events if each]
    late = [call for call, (_, was_last) in drafts.items() if not was_last]
    if late:
        return f"the calls {late} were not read at their last piece"
    return _difference([drafts[call][0] for call in sorted(drafts)], values)


def _through_a_provider(random: Random, values: Sequence[dict[str, Any]]) -> str | None:
    provider = random.choice(HTTP_PROVIDERS)
    model = random.choice(models_of(provider))
    asked = Asked.of(provider, call_of(asking(tools=(_FORM.tool,)), model, provider.value))
    if random.random() < 0.5:
        pieces = [*_pieces(random, written_tests(random, [*values]).text)]
        answer = reply(TextPart(tuple(pieces)), model=model)
    else:
        calls = [
            ToolUsePart(f"call_{number}", GENERATE_TEST_TOOL, (*_pieces(random, as_json(random, value)),))
            for number, value in enumerate(values)
        ]
        answer = reply(*calls, model=model, stop=SimStopReason.TOOL_USE)
    reader, arrivals = asked.reader(), DraftStreamParser()
    drafts: list[DraftTest | UnreadablePart] = []
    for event in asked.events(_pieces(random, asked.bytes_of(answer))):
        for delta in reader.feed(event):
            drafts += arrivals.feed(delta)
    finished = reader.finish()
    message = ChatMessage(ChatRole.ASSISTANT, finished.parts)
    drafts += arrivals.finish(Completion(message, None, Usage(), finished.stop_reason, model, provider.value))
    told = _difference(drafts, values)
    return told and f"{provider.value}: {told}"


def _difference(drafts: Iterable[DraftTest | UnreadablePart], values: Iterable[dict[str, Any]]) -> str | None:
    found, expected = [*drafts], [parse_draft(value) for value in values]
    return None if found == expected else f"{found!r} is not {expected!r}"


def _completion(text: str) -> Completion:
    return Completion(ChatMessage.assistant(text), None, Usage(), StopReason.END, "m", "offline")


def _pieces(random: Random, whole: Any) -> Iterator[Any]:
    """A text, or bytes, in pieces; in one case of four as small as they get."""
    places = range(1, len(whole))
    count = len(places) if random.random() < 0.25 else min(SPLITS_OF_CASE, len(places))
    cuts = [0, *sorted(random.sample(places, count)), len(whole)]
    return (whole[start:end] for start, end in itertools.pairwise(cuts))


if __name__ == "__main__":
    Fuzzer(compare_arrivals, "splits", SPLITS_OF_CASE, CASES_IN_BATCH).main(__doc__, "text and bytes")
