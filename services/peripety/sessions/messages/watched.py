"""Encoding of watch events as message bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2 as pb
from peripety.sessions.messages.told import turn_event
from peripety.sessions.watching.model import Closed, Heartbeat, Rewound, SeatActed

if TYPE_CHECKING:
    from peripety.sessions.seen import Seen
    from peripety.sessions.watching.model import WatchEvent

__all__ = ["watched"]


def watched(event: WatchEvent) -> bytes:
    """Encode a watch event; an event of a turn is encoded once for all viewers with the same view."""
    match event:
        case Heartbeat():
            beat = pb.WatchSessionResponse.Heartbeat(last_sequence=event.last_sequence)
            return pb.WatchSessionResponse(heartbeat=beat).SerializeToString()
        case SeatActed():
            acted = pb.WatchSessionResponse.SeatActed(
                turn=event.turn, seat_id=event.seat_id, waiting_seat_ids=event.waiting
            )
            return pb.WatchSessionResponse(seat_acted=acted).SerializeToString()
        case Rewound():
            rewound = pb.WatchSessionResponse.Rewound(turn=event.turn, sequence=event.sequence)
            return pb.WatchSessionResponse(rewound=rewound).SerializeToString()
        case Closed():
            closed = pb.WatchSessionResponse.Closed(reason=event.reason, last_sequence=event.last_sequence)
            return pb.WatchSessionResponse(closed=closed).SerializeToString()
    return event.encoded(_encoded)


def _encoded(seen: Seen) -> bytes:
    return pb.WatchSessionResponse(turn_event=turn_event(seen)).SerializeToString()
