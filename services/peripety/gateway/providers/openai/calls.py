"""Assembly of streamed tool calls from their pieces."""

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
    """Assembler of streamed tool calls.

    The first piece of a call has its name and id, later ones only its index. Some servers send whole calls,
    without an index or all with the same one, or without an id.

    Args:
        assembly: the answer that the calls belong to.
        names: the offered tools.
        ids: generator of ids for calls without a unique one.
    """

    def __init__(self, assembly: Assembly, names: ToolNames, ids: CallIds) -> None:
        self._assembly = assembly
        self._names = names
        self._ids = ids
        self._by_index: dict[int, GrowingCall] = {}
        self._by_id: dict[str, GrowingCall] = {}
        self._last: GrowingCall | None = None

    def feed(self, piece: Mapping[str, Any]) -> list[Delta]:
        """Add one piece; return the deltas.

        Raises:
            UnavailableError: it neither belongs to a call nor starts one (code STREAM_MALFORMED).
        """
        index = piece.get("index")
        if index is not None and not isinstance(index, int):
            raise malformed("the index of a tool call is not a number")
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
        """Return the call that a piece continues; None if it starts one."""
        if call_id:
            # With an index in use, another id starts another call.
            return self._by_id.get(call_id)
        if index is not None:
            return self._by_index.get(index)
        return None if name else self._last
