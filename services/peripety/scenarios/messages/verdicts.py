"""What came of checking the items of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.client.items import item_error
from peripety.scenarios.messages import parts

if TYPE_CHECKING:
    from peripety.errors import PeripetyError
    from peripety.scenarios.checking import Inspection

__all__ = ["failed_verdict", "verdict"]


def verdict(item_id: str, found: Inspection) -> pb.SpecVerdict:
    """What came of checking one item."""
    return pb.SpecVerdict(
        item_id=item_id,
        accepted=found.accepted,
        findings=parts.findings(found.findings),
        spec_hash=found.spec_hash,
        dry_run=parts.report(found.dry_run) if found.dry_run else None,
    )


def failed_verdict(item_id: str, error: PeripetyError) -> pb.SpecVerdict:
    """Why one item could not be checked."""
    return pb.SpecVerdict(item_id=item_id, error=item_error(error))
