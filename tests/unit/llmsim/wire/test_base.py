from __future__ import annotations

import pytest

from peripety.llmsim.types import RetryForm, RetryHint
from peripety.llmsim.wire.base import retry_headers


@pytest.mark.parametrize(
    ("hint", "headers"),
    [
        (None, {}),
        (RetryHint(2), {"retry-after": "2"}),
        (RetryHint(0.25), {"retry-after": "0.25"}),
        (RetryHint(0.25, RetryForm.MILLISECONDS), {"retry-after-ms": "250"}),
        (
            RetryHint(1.5, RetryForm.DATE),
            {"retry-after": "Thu, 01 Jan 2026 00:00:02 GMT"},
        ),
    ],
)
def test_a_hint_is_told_in_its_own_form(hint: RetryHint | None, headers: dict[str, str]) -> None:
    assert retry_headers(hint, now=1_767_225_600.0) == headers
