from __future__ import annotations

import pytest

from peripety.engine._reference.codegen.code import indent, write_dispatch


def test_a_body_of_nothing_passes() -> None:
    assert indent([]) == ["    pass"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 512])
def test_each_number_carries_out_its_own_body(count: int) -> None:
    source = compile(
        "\n".join(write_dispatch("number", [[f"done.append({n})"] for n in range(count)])),
        "",
        "exec",
    )
    for number in range(count):
        done: list[int] = []
        exec(source, {"number": number, "done": done})  # noqa: S102 - made above
        assert done == [number]
