"""Faults in the bytes of an answer: invalid JSON, errors, missing usage, split characters."""

from __future__ import annotations

import itertools
from http.client import responses
from typing import TYPE_CHECKING

from peripety.simulator.delivery.breaks import chunk, interrupted
from peripety.simulator.delivery.payload import replaced, without_usage
from peripety.simulator.delivery.plan import Plan, Step, begins_ms
from peripety.simulator.failures import KINDS, Place, embedded
from peripety.simulator.model import Frame, Tag
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.simulator.model import Reply
    from peripety.simulator.scenario.model import Failure
    from peripety.simulator.wire.base import Wire

__all__ = ["page", "pieces", "split_characters", "spoilt_document", "spoilt_stream"]

_PIECES = 8
_APART_MS = 2.0
_LEADING = 0xC0  # lead byte of a multi-byte character


def page(status: int) -> str:
    """Return the HTML error page of a proxy."""
    title = f"{status} {responses.get(status, 'Error')}"
    return f"<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n</body>\n</html>\n"


def spoilt_stream(
    plan: Plan[Frame[bytes]], failure: Failure, wire: Wire, request_id: str
) -> Plan[Frame[bytes]]:
    """Return a stream with faulty bytes; the same stream if the fault does not affect bytes."""
    begins = begins_ms(plan)
    settings = failure.settings
    match failure.type:
        case "empty_body":
            return Plan(ends_ms=begins)
        case "error_in_200":
            frame = Frame(wire.error_frame(embedded(failure), request_id, ()), Tag.END)
            return Plan([Step(begins, frame)], ends_ms=begins)
        case "error_in_stream":
            error = embedded(failure)
            return interrupted(
                plan, settings["after_chunks"], lambda sent: wire.error_frame(error, request_id, sent)
            )
        case "malformed_json":
            place = chunk(plan, 0)
            at_ms, frame = plan.steps[place]
            wrong = Step(at_ms, Frame(replaced(frame.data, settings["raw"]), frame.tag, frame.tokens))
            return plan.replaced([*plan.steps[:place], wrong, *plan.steps[place + 1 :]])
        case "missing_usage":
            return plan.replaced(
                [
                    Step(at_ms, Frame(without_usage(frame.data), frame.tag, frame.tokens))
                    for at_ms, frame in plan.steps
                    if frame.tag is not Tag.USAGE
                ]
            )
    return plan


def spoilt_document(body: bytes, failure: Failure, wire: Wire, request_id: str) -> bytes:
    """Return a faulty document; the same document if the fault does not affect bytes."""
    match failure.type:
        case "empty_body":
            return b""
        case "error_in_200":
            return wire.error(embedded(failure), request_id, now=0).body  # only headers contain dates
        case "malformed_json":
            return str(failure.settings["raw"]).encode()
        case "missing_usage":
            return without_usage(body)
    return body


def pieces(body: bytes, reply: Reply, failure: Failure) -> Iterator[Frame[bytes]]:
    """Yield a document as chunks, for faults that occur between chunks.

    Args:
        body: the document.
        reply: the answer in the document; its tokens are spread evenly.
        failure: the fault.
    """
    if KINDS[failure.type].place is not Place.STREAM:
        yield Frame(body, Tag.END)
        return
    if failure.type == "partial_response":
        bounds = [0, _end_of_text(body, failure.settings["partial_text"]), len(body)]
    else:
        bounds = [len(body) * number // _PIECES for number in range(_PIECES + 1)]
    tokens = reply.usage.output
    for begin, end in itertools.pairwise(bounds):
        share = tokens * end // len(body) - tokens * begin // len(body)
        yield Frame(body[begin:end], Tag.END if end == len(body) else Tag.TEXT, share)


def _end_of_text(body: bytes, text: str) -> int:
    written = compact(text)[1:-1]
    return body.rfind(written) + len(written) if written in body else len(body) // 2


def split_characters(steps: Iterable[Step[bytes]]) -> Iterator[Step[bytes]]:
    """Split each multi-byte character.

    The parts leave at different times, so that they arrive separately.
    """
    late_ms = 0.0
    for at_ms, data in steps:
        begin = 0
        for place in (place for place, byte in enumerate(data) if byte >= _LEADING):
            yield Step(at_ms + late_ms, data[begin : place + 1])
            late_ms += _APART_MS
            begin = place + 1
        yield Step(at_ms + late_ms, data[begin:])
