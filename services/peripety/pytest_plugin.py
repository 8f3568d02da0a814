"""pytest plugin: `llm_simulator` serves a scripted LLM on its own port for each test that uses it.

    @pytest.mark.llm_script("login.toml")
    def test_login(llm_simulator):
        client = OpenAI(base_url=f"{llm_simulator.url}/v1", api_key="any")
        ...
        llm_simulator.captured.assert_received("login")

Only pytest is imported until a test uses the fixture.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.llmsim import Script, ScriptBuilder, Simulator
    from peripety.llmsim.capture import CaptureLog
    from peripety.llmsim.server.runner import SimulatorServer

__all__ = ["LlmSimulator", "llm_simulator"]


MARKER = "llm_script"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(script, **options): script of llm_simulator: a file beside the test, or a Script",
    )


@pytest.fixture
def llm_simulator(request: pytest.FixtureRequest) -> Iterator[LlmSimulator]:
    """Serve a scripted LLM until the test ends, with the script of its marker or one it loads."""
    served = LlmSimulator(request.path.parent)
    marker = request.node.get_closest_marker(MARKER)
    try:
        if marker is not None:
            served.load(*marker.args, **marker.kwargs)
        yield served
    finally:
        served.close()


class LlmSimulator:
    """A scripted LLM and its server.

    Args:
        directory: base directory of script files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._simulator: Simulator | None = None
        self._server: SimulatorServer | None = None

    def load(self, script: str | Path | Script | ScriptBuilder, **options: Any) -> Self:
        """Serve a new script with a fresh state and a new URL instead of the current one.

        Args:
            script: a file, relative to the test's directory, or a script, or a builder of one.
            options: arguments of the `Simulator`, such as `seed`.
        """
        from peripety.llmsim import ScriptBuilder, Simulator, load_script  # noqa: PLC0415 - see above
        from peripety.llmsim.server.runner import serve_in_thread  # noqa: PLC0415

        if isinstance(script, str | Path):
            script = load_script(self._directory / script)
        elif isinstance(script, ScriptBuilder):
            script = script.build()
        self.close()
        self._simulator = Simulator(script, **options)
        self._server = serve_in_thread(self._simulator)
        return self

    @property
    def url(self) -> str:
        """Base URL of every provider."""
        if self._server is None:
            raise self._not_loaded_error()
        return self._server.url

    @property
    def simulator(self) -> Simulator:
        """The simulator; its clock, state and failures can be changed while it is served."""
        if self._simulator is None:
            raise self._not_loaded_error()
        return self._simulator

    @property
    def captured(self) -> CaptureLog:
        """Calls received so far."""
        return self.simulator.captured

    def close(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.close()
        if self._simulator is not None:
            self._simulator.close()

    def _not_loaded_error(self) -> pytest.UsageError:
        return pytest.UsageError(
            f'no script: mark the test @pytest.mark.{MARKER}("file.toml"), or call llm_simulator.load(...)',
        )
