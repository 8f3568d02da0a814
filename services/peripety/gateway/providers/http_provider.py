"""Provider over HTTP, with the protocol of its wire."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from peripety.core.concurrency import closing
from peripety.errors import UnavailableError
from peripety.gateway.providers.completion_builder import get_object, malformed_stream_error
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.http_transport import HttpTransport, StreamTimeouts
from peripety.gateway.providers.stream_framing import StreamFraming
from peripety.gateway.types.response import ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.gateway.providers.provider import Delta, Endpoint, ProviderCall, ProviderEvent
    from peripety.gateway.providers.stream_framing import ServerSentEvent
    from peripety.gateway.providers.wire_protocol import AnswerDecoder, RequestBody, WireProtocol


_Event: TypeAlias = "ServerSentEvent | str"


class HttpProvider:
    """Provider that calls one server and streams its answers.

    Args:
        endpoint: the server and the account.
        wire: its protocol.
        timeouts: the time-outs.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: WireProtocol,
        timeouts: StreamTimeouts = StreamTimeouts(),  # noqa: B008 - frozen
    ) -> None:
        self._endpoint = endpoint
        self._wire = wire
        self._transport = HttpTransport(endpoint.name, timeouts)

    @property
    def name(self) -> str:
        """Return the provider's name in `provider/model`."""
        return self._endpoint.name

    @property
    def model(self) -> str | None:
        """Return the default model, or None."""
        return self._endpoint.model

    @property
    def account(self) -> str:
        """Return a digest of server and key."""
        return self._endpoint.account

    async def stream(self, call: ProviderCall) -> AsyncIterator[ProviderEvent]:
        """Make a call; events that arrive together are merged."""
        failures = self._create_error_mapper(call)
        body = self._wire.body(call)
        answer = self._wire.answer(call, body, failures)
        async with closing(self._event_batches(call, body, failures, answer)) as arrivals:
            try:
                async for events in arrivals:
                    for delta in _merge_deltas(
                        [delta for event in events for delta in answer.feed(_event_data(event))],
                    ):
                        yield delta
            except UnavailableError:
                # If the connection fails after the complete answer, only the usage figures are lost.
                if not answer.complete:
                    raise
        yield replace(answer.finish(), schema_report=body.schema_report)

    def _event_batches(
        self,
        call: ProviderCall,
        body: RequestBody,
        failures: ErrorMapper,
        answer: AnswerDecoder,
    ) -> AsyncIterator[Sequence[_Event]]:
        url = self._endpoint.base_url + self._wire.path(call)
        headers = self._wire.headers(call, self._endpoint.key)
        by_lines = self._wire.framing is StreamFraming.LINES
        post = self._transport.stream_lines if by_lines else self._transport.stream_events
        return post(url, body.document, headers, failures.from_response, lambda: answer.done)

    async def count_tokens(self, call: ProviderCall) -> int | None:
        """Return the input tokens of a call without making it; None if the provider does not count.

        Raises:
            PeripetyError: as for the call itself.
        """
        counting = self._wire.token_count_request(call)
        if counting is None:
            return None
        told = await self._transport.fetch_json(
            "POST",
            self._endpoint.base_url + counting.path,
            self._wire.headers(call, self._endpoint.key),
            self._create_error_mapper(call).from_response,
            body=counting.document,
        )
        tokens = get_object(told).get(counting.field)
        if not isinstance(tokens, int):
            raise malformed_stream_error(f"{counting.field} is not a token count")
        return tokens

    async def aclose(self) -> None:
        """Close the pooled connections."""
        await self._transport.aclose()

    def _create_error_mapper(self, call: ProviderCall) -> ErrorMapper:
        return ErrorMapper(self._endpoint, call.model, self._wire.vocabulary)


def _event_data(event: _Event) -> str:
    return event if isinstance(event, str) else event.data


def _merge_deltas(deltas: Sequence[Delta]) -> list[Delta]:
    """Merge neighbouring deltas of the same kind: each delta costs a message, regardless of its length."""
    joined: list[Delta] = []
    for delta in deltas:
        both = _merge_pair(joined[-1], delta) if joined else None
        if both is None:
            joined.append(delta)
        else:
            joined[-1] = both
    return joined


def _merge_pair(first: Delta, second: Delta) -> Delta | None:
    match first, second:
        case TextDelta(), TextDelta():
            return TextDelta(first.text + second.text)
        case ReasoningDelta(), ReasoningDelta():
            return ReasoningDelta(first.text + second.text)
        case ToolCallDelta(), ToolCallDelta(name="") if first.call_id == second.call_id:
            return replace(first, arguments_text=first.arguments_text + second.arguments_text)
        case _:
            return None
