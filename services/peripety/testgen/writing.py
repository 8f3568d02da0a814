"""JSON codec of stored runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter

from peripety.durable.writing import read_error, write_error
from peripety.errors import Finding, PeripetyError
from peripety.gateway.writing import dumps
from peripety.quality import Coverage, Mutant, MutationScore
from peripety.testgen import events, model, sources, stored
from peripety.testgen.events import Failed, RunEvent, Stats
from peripety.testgen.loop.ledger import Account
from peripety.testgen.model import TestGenOrder
from peripety.testgen.sources import Command, KeptSubject, PolicyDocument, ScenarioDocument
from peripety.testgen.stored import Rerun

__all__ = [
    "read_account",
    "read_event",
    "read_order",
    "read_rerun",
    "read_subject",
    "write_account",
    "write_event",
    "write_order",
    "write_rerun",
    "write_subject",
]

T = TypeVar("T")

# The models import these names for type checkers only.
_NAMES = {
    **vars(events),
    **vars(model),
    **vars(sources),
    **vars(stored),
    **{kind.__name__: kind for kind in (Mapping, Finding, Coverage, Mutant, MutationScore)},
}


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    adapter = TypeAdapter(kind)
    adapter.rebuild(_types_namespace=_NAMES)
    return adapter


_TOLD: dict[str, type[Any]] = {
    "started": events.Started,
    "progressed": events.Progressed,
    "test_made": events.TestMade,
    "duplicate_dropped": events.DuplicateDropped,
    "test_ran": events.TestRan,
    "reflected": events.Reflected,
    "measured": events.Measured,
    "completed": events.Completed,
}
_EVENTS = {name: _adapter(kind) for name, kind in _TOLD.items()}
_NAMES_OF_EVENTS = {kind: name for name, kind in _TOLD.items()}
_FAILED = "failed"
_KEPT: dict[str, type[Any]] = {"scenario": ScenarioDocument, "policy": PolicyDocument, "command": Command}
_SUBJECTS = {name: _adapter(kind) for name, kind in _KEPT.items()}
_NAMES_OF_SUBJECTS = {kind: name for name, kind in _KEPT.items()}
_ORDER = _adapter(TestGenOrder)
_ACCOUNT = _adapter(Account)
_STATS = _adapter(Stats)
_RERUN = _adapter(Rerun)


def write_event(event: RunEvent) -> tuple[str, str]:
    """Encode an event as its kind and its JSON text."""
    if isinstance(event, Failed):
        return _FAILED, dumps({"error": write_error(event.error), "stats": _plain(_STATS, event.stats)})
    kind = _NAMES_OF_EVENTS[type(event)]
    return kind, dumps(_plain(_EVENTS[kind], event))


def read_event(kind: str, text: str) -> RunEvent:
    """Decode an event."""
    written = json.loads(text)
    if kind != _FAILED:
        read: RunEvent = _EVENTS[kind].validate_python(written)
        return read
    error = read_error(written["error"])
    return Failed(error or PeripetyError(""), _STATS.validate_python(written["stats"]))


def write_order(order: TestGenOrder) -> str:
    """Encode an order."""
    return dumps(_plain(_ORDER, order))


def read_order(text: str) -> TestGenOrder:
    """Decode an order."""
    return _ORDER.validate_python(json.loads(text))


def write_account(account: Account) -> str:
    """Encode a budget account."""
    return dumps(_plain(_ACCOUNT, account))


def read_account(text: str) -> Account:
    """Decode a budget account."""
    return _ACCOUNT.validate_python(json.loads(text))


def write_subject(subject: KeptSubject | None) -> str | None:
    """Encode a subject."""
    if subject is None:
        return None
    kind = _NAMES_OF_SUBJECTS[type(subject)]
    return dumps([kind, _plain(_SUBJECTS[kind], subject)])


def read_subject(text: str | None) -> KeptSubject | None:
    """Decode a subject."""
    if text is None:
        return None
    kind, written = json.loads(text)
    read: KeptSubject = _SUBJECTS[kind].validate_python(written)
    return read


def write_rerun(rerun: Rerun) -> str:
    """Encode the results of a rerun."""
    return dumps(_plain(_RERUN, rerun))


def read_rerun(text: str | None) -> Rerun | None:
    """Decode the results of a rerun."""
    return None if text is None else _RERUN.validate_python(json.loads(text))


def _plain(adapter: TypeAdapter[Any], value: Any) -> Any:
    return adapter.dump_python(value, mode="json")
