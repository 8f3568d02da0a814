"""Items and verdicts of a batch as protobuf messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.client.items import item_error, parcels
from peripety.errors import InvalidArgumentError
from peripety.requests import require
from peripety.scenarios.batch import Verdict
from peripety.scenarios.certificates.document import decode
from peripety.scenarios.messages import parts
from peripety.scenarios.messages.certificates import certificate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.scenarios.batch import Document

__all__ = ["documents", "responses"]

_MAX_ITEM_ID_BYTES = 256


def documents(items: Iterable[pb.SpecItem]) -> list[Document[str]]:
    """Convert the items of a message; an invalid item does not affect the others."""
    return [(item.item_id, _content(item)) for item in items]


def _content(item: pb.SpecItem) -> bytes | Verdict:
    try:
        size = len(item.item_id.encode())
        require(0 < size <= _MAX_ITEM_ID_BYTES, ".item_id", f"must have 1 to {_MAX_ITEM_ID_BYTES} bytes")
    except InvalidArgumentError as error:
        return Verdict(error=error)
    return item.spec


def responses(found: Iterable[tuple[str, Verdict]]) -> Iterator[pb.ValidateScenariosResponse]:
    """Convert verdicts to as few messages as sizes allow; the caller sets the sequence numbers."""
    for some in parcels(_verdict(item_id, verdict) for item_id, verdict in found):
        yield pb.ValidateScenariosResponse(verdicts=some)


def _verdict(item_id: str, found: Verdict) -> pb.SpecVerdict:
    if found.error:
        return pb.SpecVerdict(item_id=item_id, error=item_error(found.error))
    findings = parts.findings(found.findings)
    findings.total = found.total
    return pb.SpecVerdict(
        item_id=item_id,
        accepted=found.accepted,
        findings=findings,
        spec_hash=found.spec_hash,
        dry_run=parts.report(found.dry_run) if found.dry_run else None,
        certificate=certificate(decode(found.certificate)) if found.certificate else None,
    )
