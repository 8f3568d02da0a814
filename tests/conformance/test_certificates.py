"""Certificates are the same bytes on both cores, and those that the repository shows."""

from __future__ import annotations

import pytest

from conformance.certificates import GOLDEN, PAGE, SPEC, example, golden
from peripety.scenarios.certificates.document import certificate_hash
from support.cores import CORE_NAMES, core_named, program_on


@pytest.mark.parametrize("name", CORE_NAMES)
def test_a_core_gives_the_golden_certificate(name: str) -> None:
    assert golden(program_on(core_named(name), SPEC.read_bytes())) == GOLDEN.read_bytes()


def test_the_worked_example_is_what_the_engine_says() -> None:
    # Of so many runs only the native core makes short work; that both agree is shown above.
    files = example(program_on(core_named("native"), SPEC.read_bytes()))
    assert {path: path.read_bytes() for path in files} == files


def test_the_page_names_the_certificate_that_it_explains() -> None:
    document = (PAGE.parent / "certificates" / "certificate.json").read_bytes().strip()
    assert certificate_hash(document) in PAGE.read_text(encoding="utf-8")
