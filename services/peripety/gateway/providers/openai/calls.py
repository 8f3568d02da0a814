"""The tool calls of a streamed answer, joined from the pieces in which they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.providers.fields import malformed, object_in, text_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.providers.assembling import Assembly, GrowingCall
    from peripety.gateway.providers.base import Delta
    from peripety.gateway.providers.earlier_turns import CallIds
    from peripety.gateway.tool_names import ToolNames

__all__ = ["StreamedCalls"]


class StreamedCalls:
    """Joins the pieces of calls.

    The first piece of a call has its name and id, the later ones only its index. Some servers send whole
    calls, without an index or all with the same one, or without an id of their own.

    Args:
        assembly: the answer that the calls belong to.
        names: the tools that are offered.
        ids: ids for calls that come without one, or with one that the conversation has already.
    """

    def __init__(self, assembly: Assembly, names: ToolNames, ids: CallIds) -> None:
        self._assembly = assembly
        self._names = names
        self._ids = ids
        self._by_index: dict[int, GrowingCall] = {}
        self._by_id: dict[str, GrowingCall] = {}
        self._last: GrowingCall | None = None

    def feed(self, piece: Mapping[str, Any]) -> list[Delta]:
        """Take one piece; return what it adds.

        Raises:
            UnavailableError: it belongs to no call, and begins none (code STREAM_MALFORMED).
        """
        index = piece.get("index")
        if index is not None and not isinstance(index, int):
            raise malformed("the index of a tool call is no number")
        function = object_in(piece.get("function"))
        call = self._call(index, text_in(piece.get("id")), text_in(function.get("name")))
        return self._assembly.add_arguments(call, text_in(function.get("arguments")))

    def _call(self, index: int | None, call_id: str, name: str) -> GrowingCall:
        begun = self._begun(index, call_id, name)
        if begun is not None:
            return begun
        if not name:
            raise malformed("a piece of a tool call belongs to none")
        call = self._assembly.open_call(self._ids.unlike(call_id), self._names.from_wire(name))
        self._last = call
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call
        return call

    def _begun(self, index: int | None, call_id: str, name: str) -> GrowingCall | None:
        """The call that a piece goes on with, unless it begins one."""
        if call_id:
            # With an index that is taken, another id begins another call.
            return self._by_id.get(call_id)
        if index is not None:
            return self._by_index.get(index)
        return None if name else self._last
