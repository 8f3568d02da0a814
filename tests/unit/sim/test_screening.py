from __future__ import annotations

import hashlib

import pytest

from peripety import engine
from peripety.errors import InvalidArgumentError
from support.engine.specs import action, document

_VALID = document()
_INVALID = document(actions=[action("a"), action("a")])


def test_each_document_is_checked_on_its_own_and_in_order() -> None:
    documents = [_VALID, b"{", _INVALID, _VALID, b"\xff", document(seed=-1), document(id="beta")]
    checked = engine.validate_many(documents)
    assert [list(one.findings) for one in checked] == [engine.validate(given) for given in documents]
    assert [one.program is None for one in checked] == [False, True, True, False, True, True, False]


def test_a_document_has_a_content_address_unless_it_is_no_json() -> None:
    good, bad, none = engine.validate_many([_VALID, _INVALID, b"{"])
    assert good.spec_hash == engine.compile(_VALID).spec_hash
    assert bad.spec_hash == hashlib.sha256(engine.canonicalize(engine.parse(_INVALID))).hexdigest()
    assert none.spec_hash == ""


def test_the_program_is_the_one_that_compiling_makes() -> None:
    (checked,) = engine.validate_many([_VALID])
    compiled = engine.compile(_VALID)
    assert checked.program is not None
    assert (checked.program.document, checked.program.spec) == (compiled.document, compiled.spec)
    assert checked.program.spec_hash == compiled.spec_hash
    assert checked.program.dry_run(runs=20, digest=True) == compiled.dry_run(runs=20, digest=True)


def test_nothing_is_nothing() -> None:
    assert engine.validate_many([]) == []


@pytest.mark.parametrize("threads", [0, 257])
def test_the_number_of_threads_has_bounds(threads: int) -> None:
    with pytest.raises(InvalidArgumentError):
        engine.validate_many([_VALID], threads=threads)
