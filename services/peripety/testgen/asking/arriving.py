"""Tests taken out of a model's stream, each the moment that it is whole.

A model that calls tools calls one for each test; any other writes a list. Both are read the same way: an
object ends with its last bracket, whatever comes after it, and one that cannot be read spoils no other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.gateway.calling.budgets.model import Amount
from peripety.gateway.calling.budgets.remaining import remaining
from peripety.gateway.model import (
    ChatMessage,
    ChatRole,
    Completed,
    Completion,
    Repairing,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolChoice,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.objects.elements import ObjectReader
from peripety.gateway.objects.json_text import readings
from peripety.gateway.streams import following
from peripety.testgen.asking.reading import Unreadable, read_draft, read_object
from peripety.testgen.asking.tools import GENERATE_TEST, TESTS
from peripety.testgen.model import Draft

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.errors import PeripetyError
    from peripety.gateway.model import GatewayEvent, GenerateRequest, ModelGateway
    from peripety.testgen.asking.tools import TestForm

__all__ = ["Arrival", "Arrivals", "arriving", "going_on"]

Arrival: TypeAlias = Draft | Unreadable | Completion

_KEPT = "Kept. Go on with the next test, or stop when there is none."
_CUT_OFF = "it has no end"
_TOOLS_NOT_TAKEN = "TOOLS_NOT_TAKEN"
_PROVIDER_REFUSED = "PROVIDER_REFUSED_REQUEST"


async def arriving(gateway: ModelGateway, request: GenerateRequest, form: TestForm) -> AsyncIterator[Arrival]:
    """Ask for tests, and give out each one as soon as it is whole.

    A model that takes no tools is asked for a list instead.

    Args:
        gateway: answers.
        request: the question, without tools and schema.
        form: the form of a test, and whether a list is asked for from the beginning.

    Yields:
        Tests, and parts that are none, in the order in which they became whole; at last the whole answer.

    Raises:
        PeripetyError: what `ModelGateway.stream` raises, after the tests that came before.
    """
    listed = replace(request, schema=form.schema)
    called = replace(request, tools=(form.tool,), tool_choice=ToolChoice(ToolChoiceMode.AUTO))
    refused = 0
    for question in (listed,) if form.by_list else (called, listed):
        has_come = False
        try:
            async with following(_answered(gateway, _after(question, refused))) as arrivals:
                async for arrival in arrivals:
                    has_come = True
                    if isinstance(arrival, Completion):
                        yield replace(arrival, calls=arrival.calls + refused)
                    else:
                        yield arrival
        except (InvalidArgumentError, FailedPreconditionError) as error:
            if has_come or question is listed or not _takes_no_tools(error):
                raise
            refused = int(error.code == _PROVIDER_REFUSED)
        else:
            return


def going_on(request: GenerateRequest, completion: Completion) -> GenerateRequest | None:
    """The question that has a model write more tests, where it calls one tool at a time.

    Args:
        request: what it was asked last.
        completion: what it answered.

    Returns:
        The question with the calls and their results; None when the model does not wait for any.
    """
    calls = completion.tool_calls
    if completion.stop_reason is not StopReason.TOOL_USE or not calls:
        return None
    results = tuple(ToolResult(call.call_id, _KEPT) for call in calls)
    said = (completion.message, ChatMessage(ChatRole.USER, results))
    return replace(request, messages=(*request.messages, *said))


class Arrivals:
    """Takes the tests out of one answer.

    Whatever of them was not whole when the answer ended is looked for once more, in all of its text.
    """

    def __init__(self) -> None:
        self._calls: dict[str, ObjectReader] = {}
        self._called: set[str] = set()
        self._begin_list()

    def take(self, event: GatewayEvent) -> Iterator[Draft | Unreadable]:
        """The tests that the next event of an answer completes."""
        match event:
            case ToolCallDelta():
                if event.name == GENERATE_TEST:
                    self._calls[event.call_id] = ObjectReader(in_array=False)
                elif event.name:
                    yield Unreadable(f"there is no tool '{event.name[:64]}'; call {GENERATE_TEST}")
                call = self._calls.get(event.call_id)
                for text in call.feed(event.arguments_text) if call else ():
                    self._called.add(event.call_id)
                    yield read_object(text)
            case TextDelta():
                for draft in map(read_object, self._list.feed(event.text)):
                    if isinstance(draft, Draft):
                        self._listed.append(draft)
                        yield draft
                    else:
                        # Perhaps it is readable with all that stands around it.
                        self._unreadable.append(draft)
            case Repairing():
                # It is written anew; what was given out stays, and is recognized when it comes again.
                self._begin_list()

    def end(self, completion: Completion) -> Iterator[Draft | Unreadable]:
        """The tests of a whole answer that its stream did not show, and what has no end."""
        yield from (Unreadable(_CUT_OFF) for call_id in self._calls if call_id not in self._called)
        tests = _listed(completion.text)
        if tests is None:
            yield from self._unreadable
            if self._list.rest:
                yield Unreadable(_CUT_OFF)
        else:
            yield from (draft for draft in map(read_draft, tests) if draft not in self._listed)

    def _begin_list(self) -> None:
        self._list = ObjectReader(in_array=True)
        self._listed: list[Draft] = []
        self._unreadable: list[Unreadable] = []


async def _answered(gateway: ModelGateway, request: GenerateRequest) -> AsyncIterator[Arrival]:
    arrivals = Arrivals()
    async with following(gateway.stream(request)) as events:
        async for event in events:
            if isinstance(event, Completed):
                for arrival in arrivals.end(event.completion):
                    yield arrival
                yield event.completion
            else:
                for arrival in arrivals.take(event):
                    yield arrival


def _after(question: GenerateRequest, refused: int) -> GenerateRequest:
    """A question with what is left of its budget after requests that a provider has refused."""
    if not refused or question.budget is None:
        return question
    return replace(question, budget=remaining(question.budget, Amount(calls=refused), 0.0))


def _listed(text: str) -> list[Any] | None:
    """The tests of a list that can be read as a whole, if perhaps not piece by piece; of several the last.

    None when there is no such list.
    """
    documents = [reading.value for reading in readings(text) if reading.document is not None]
    for document in reversed(documents):
        tests = document.get(TESTS) if isinstance(document, dict) else document
        if isinstance(tests, list):
            return tests
    return None


def _takes_no_tools(error: PeripetyError) -> bool:
    """Whether the question may have been refused for its tools alone."""
    return isinstance(error, InvalidArgumentError) or error.code == _TOOLS_NOT_TAKEN
