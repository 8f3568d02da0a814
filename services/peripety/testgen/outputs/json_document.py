"""A run as one JSON document, and back.

Its keys are the attributes of `Suite` and of what it is made of; enums are their values. `before` and `after`
of a mutant are JSON in a text. `schema` counts up when the document changes in a way that readers notice.
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
"""What the key `schema` holds."""

_SUITE: TypeAdapter[parts.Suite] = TypeAdapter(parts.Suite)
# The dataclasses name these for type checkers alone.
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
    """The document, for programs and for people."""
    document = {"schema": SCHEMA, **_SUITE.dump_python(suite, mode="json")}
    # Half a surrogate pair, which UTF-8 lacks, is written as the escape that JSON has for it.
    return json.dumps(document, ensure_ascii=False, indent=2).encode(errors="backslashreplace") + b"\n"


def read(document: bytes) -> parts.Suite:
    """The run that a document holds.

    Raises:
        InvalidArgumentError: it is none, or of another version.
    """
    try:
        value: Any = json.loads(document)
        if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
            raise InvalidArgumentError(
                f"It is no file of tests: its schema is not {SCHEMA}", code="FILE_INVALID"
            )
        return _SUITE.validate_python(value)
    except ValidationError as error:
        place = "/".join(map(str, error.errors()[0]["loc"]))
        reason = f"at {place}: {error.errors()[0]['msg']}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise InvalidArgumentError(f"It is no file of tests: {reason}", code="FILE_INVALID")
