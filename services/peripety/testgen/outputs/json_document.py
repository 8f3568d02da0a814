"""JSON document of a run, and its parser.

The keys are the attributes of `Suite` and its parts; enums are their values. `before` and `after` of a mutant
are JSON texts. The version in `schema` increases with each incompatible change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from peripety.errors import Finding, InvalidArgumentError
from peripety.gateway.model import Spent
from peripety.quality import Coverage, Mutant, MutationScore
from peripety.testgen import events, model
from peripety.testgen.outputs import suite as parts
from peripety.testgen.subjects.subject import SubjectKind

__all__ = ["SCHEMA", "read", "write"]

SCHEMA = "peripety.testgen.suite/1"
"""The value of the key `schema`."""

_SUITE: TypeAdapter[parts.Suite] = TypeAdapter(parts.Suite)
# The dataclasses import these names for type checkers only.
_SUITE.rebuild(
    _types_namespace={
        **vars(model),
        **vars(events),
        **vars(parts),
        **{
            kind.__name__: kind
            for kind in (Mapping, Finding, Coverage, Mutant, MutationScore, Spent, SubjectKind)
        },
    }
)


def write(suite: parts.Suite) -> bytes:
    """Return the document."""
    document = {"schema": SCHEMA, **_SUITE.dump_python(suite, mode="json")}
    # A lone surrogate, which UTF-8 cannot encode, becomes a JSON escape.
    return json.dumps(document, ensure_ascii=False, indent=2).encode(errors="backslashreplace") + b"\n"


def read(document: bytes) -> parts.Suite:
    """Parse a document.

    Raises:
        InvalidArgumentError: the document is invalid, or of another version.
    """
    try:
        value: Any = json.loads(document)
        if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
            raise InvalidArgumentError(
                f"not a peripety test file: schema is not {SCHEMA}", code="FILE_INVALID"
            )
        return _SUITE.validate_python(value)
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        reason = f"at {place}: {error.errors()[0]['msg']}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise InvalidArgumentError(f"not a peripety test file: {reason}", code="FILE_INVALID")
