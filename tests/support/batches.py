"""Batches of small documents, and documents that take as long as a test wants."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.scenario import batch
from peripety.scenario.batch import validator
from peripety.scenario.certificate.types import CertificateOptions
from peripety.scenario.types import DryRunOptions, ValidationLevel
from support.scenarios import chance, document
from support.specs import spec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import pytest

    from peripety.core.concurrency import Executor
    from peripety.engine import ValidationResult
    from peripety.scenario.batch import BatchOptions, DocumentVerdict


DICE = batch.BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64))

CERTIFIED = batch.BatchOptions(
    ValidationLevel.CERTIFICATE,
    DICE.dry_run,
    CertificateOptions(("idle", "random"), max_runs=64),
)

GOOD = document(chance(0.6))
EASY = document(chance(0.2, min_fail_rate=0.9))
WRONG = document(spec(seed="seven"))
BYTES = b"\xff\x00"


def named(name: str) -> bytes:
    """A good document like no other."""
    return document({**chance(0.6), "name": name})


def name_of(checked: ValidationResult) -> str:
    """What `named` was given."""
    assert checked.program is not None
    name: str = checked.program.spec["name"]
    return name


def spaced(data: bytes, spaces: int) -> bytes:
    """The same content in other bytes."""
    return json.dumps(json.loads(data), indent=spaces).encode()


def verdicts(
    documents: list[tuple[Any, bytes]],
    options: BatchOptions,
    **more: Any,
) -> dict[Any, DocumentVerdict]:
    """What a batch says of each document, in their order and not in that in which it was said."""
    found = list(batch.validate(documents, options, **more))
    assert len(found) == len(documents)
    said = dict(found)
    return {key: said[key] for key, _ in documents}


def playing_otherwise(
    monkeypatch: pytest.MonkeyPatch,
    otherwise: Callable[[str, Executor], Coroutine[None, None, DocumentVerdict | None]],
) -> None:
    """Have something else done with documents that are to be played; they are when it gives nothing."""

    evaluate = validator.evaluate_compiled

    async def played(checked: ValidationResult, options: BatchOptions, worker: Executor) -> DocumentVerdict:
        done = await otherwise(name_of(checked), worker)
        return done or await evaluate(checked, options, worker)

    monkeypatch.setattr(validator, "evaluate_compiled", played)
