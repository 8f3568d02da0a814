"""What came of compiling a policy as JSON, for a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

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
    """Write a result down, without its document."""
    return _RESULT.dump_json(replace(compiled, document=b""))


def read(written: bytes, document: bytes) -> model.Compiled:
    """Read what `write` has written of the result with a document."""
    return replace(_RESULT.validate_json(written), document=document)
