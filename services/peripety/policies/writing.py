"""What came of compiling a policy as JSON, for a database."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from peripety.errors import Finding
from peripety.policies import model
from peripety.quality import Coverage, Mutant, MutationScore

__all__ = ["read", "write"]

_RESULT: TypeAdapter[model.Compiled] = TypeAdapter(model.Compiled)
# The model names these for type checkers alone.
_RESULT.rebuild(
    _types_namespace={
        **vars(model),
        **{kind.__name__: kind for kind in (Mapping, Finding, Coverage, Mutant, MutationScore)},
    }
)


def write(compiled: model.Compiled) -> bytes:
    """Write a result down."""
    return _RESULT.dump_json(compiled)


def read(written: bytes) -> model.Compiled:
    """Read what `write` has written."""
    return _RESULT.validate_json(written)
