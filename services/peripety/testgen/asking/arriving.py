"""Parser of tests from a response stream; each test is available as soon as it is complete.

A model with tool support calls a tool for each test; any other model writes a list. Both are parsed alike: an
object ends with its last bracket, regardless of the text after it, and an invalid object does not affect
others.
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

_KEPT = "Accepted. Continue with the next test, or stop if there are no more."
_CUT_OFF = "it is incomplete"
_TOOLS_NOT_TAKEN = "TOOLS_NOT_TAKEN"
_PROVIDER_REFUSED = "PROVIDER_REFUSED_REQUEST"


async def arriving(gateway: ModelGateway, request: GenerateRequest, form: TestForm) -> AsyncIterator[Arrival]:
    """Request tests, and yield each one as soon as it is complete.

    A model without tool support receives a request for a list instead.

    Args:
        gateway: the model gateway.
        request: the request, without tools and schema.
        form: the form of a test, and whether to request a list from the start.

    Yields:
        Tests and unreadable parts, in order of completion; at the end, the complete response.

    Raises:
        PeripetyError: as raised by `ModelGateway.stream`, after the tests before the error.
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
    """Return a continuation request for a model that calls one tool at a time.

    Args:
        request: the previous request.
        completion: its response.

    Returns:
        The request with the tool calls and their results; None if the model does not wait for results.
    """
    calls = completion.tool_calls
    if completion.stop_reason is not StopReason.TOOL_USE or not calls:
        return None
    results = tuple(ToolResult(call.call_id, _KEPT) for call in calls)
    said = (completion.message, ChatMessage(ChatRole.USER, results))
    return replace(request, messages=(*request.messages, *said))


class Arrivals:
    """Parser of the tests of one response.

    Parts that are incomplete in the stream are searched once more in the complete text.
    """

    def __init__(self) -> None:
        self._calls: dict[str, ObjectReader] = {}
        self._called: set[str] = set()
        self._begin_list()

    def take(self, event: GatewayEvent) -> Iterator[Draft | Unreadable]:
        """Yield the tests that the next event completes."""
        match event:
            case ToolCallDelta():
                if event.name == GENERATE_TEST:
                    self._calls[event.call_id] = ObjectReader(in_array=False)
                elif event.name:
                    yield Unreadable(f"unknown tool '{event.name[:64]}'; call {GENERATE_TEST}")
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
                        # It may be readable as part of the complete text.
                        self._unreadable.append(draft)
            case Repairing():
                # The response is written again. Tests that were already yielded are recognized as duplicates.
                self._begin_list()

    def end(self, completion: Completion) -> Iterator[Draft | Unreadable]:
        """Yield tests that only the complete response shows, and truncated parts."""
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
    """Return a request with the budget that remains after requests that a provider rejected."""
    if not refused or question.budget is None:
        return question
    return replace(question, budget=remaining(question.budget, Amount(calls=refused), 0.0))


def _listed(text: str) -> list[Any] | None:
    """Return the tests of the last list that is valid as a whole; None without one."""
    documents = [reading.value for reading in readings(text) if reading.document is not None]
    for document in reversed(documents):
        tests = document.get(TESTS) if isinstance(document, dict) else document
        if isinstance(tests, list):
            return tests
    return None


def _takes_no_tools(error: PeripetyError) -> bool:
    """Return True if the request may have been rejected only because of its tools."""
    return isinstance(error, InvalidArgumentError) or error.code == _TOOLS_NOT_TAKEN
