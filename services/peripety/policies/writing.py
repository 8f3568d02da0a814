"""JSON codec of compile results, for the database."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from peripety.errors import Finding
from peripety.policies import model
from peripety.quality import Coverage, Mutant, MutationScore

__all__ = ["read", "write"]

_RESULT: TypeAdapter[model.Compiled] = TypeAdapter(model.Compiled)
# The model imports these names for type checkers only.
_RESULT.rebuild(
    _types_namespace={
        **vars(model),
        **{kind.__name__: kind for kind in (Mapping, Finding, Coverage, Mutant, MutationScore)},
    }
)


def write(compiled: model.Compiled) -> bytes:
    """Encode a result."""
    return _RESULT.dump_json(compiled)


def read(written: bytes) -> model.Compiled:
    """Decode a result."""
    return _RESULT.validate_json(written)
