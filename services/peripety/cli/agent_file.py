"""Agent files (TOML): a manifest and tools that are commands of this machine.

One error lists all problems of a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from peripety.api.agent.v1 import agent_pb2 as pb
from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.cli.options import MAX_CALLS, MAX_DOLLARS, MAX_SECONDS, MAX_TOKENS
from peripety.cli.output import make_budget
from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.llmsim.script.sources import ReferencedFiles, ScriptFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from peripety.api.common.v1 import common_pb2 as common


MAX_RESULT_BYTES = 256 * 1024
"""Maximum size of the result of a tool."""
_CHUNK_BYTES = 16 * 1024


class _TooLargeError(Exception):
    """The output of a command exceeds the limit."""


@dataclass(frozen=True, slots=True)
class CommandTool:
    """A tool that is a local command: arguments as JSON on standard input, the result on standard output.

    Attributes:
        words: the program and its arguments, run without a shell.
        directory: the working directory.
        seconds: the timeout.
    """

    words: tuple[str, ...]
    directory: Path
    seconds: float

    async def run_call(self, call: gateway.ToolCall) -> gateway.ToolResult:
        """Run the command for a tool call.

        A failure becomes an error result, so that the model can react to it.
        """
        try:
            text, is_error = await self._run(call.arguments)
        except TimeoutError:
            text, is_error = f"The tool took longer than {self.seconds:g} s.", True
        except _TooLargeError:
            text, is_error = f"The tool wrote more than {MAX_RESULT_BYTES:,} bytes.", True
        except OSError as error:
            text, is_error = f"The tool cannot be run: {error.strerror or error}.", True
        return gateway.ToolResult(call_id=call.call_id, text=text, is_error=is_error)

    async def _run(self, arguments: bytes) -> tuple[str, bool]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=self.directory,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self.seconds):
                output, complaints, _ = await asyncio.gather(
                    _read_all(process.stdout),
                    _read_all(process.stderr),
                    _write_input(process.stdin, arguments),
                )
                code = await process.wait()
        finally:
            # Kill the process group: nothing reads the output of its children any more.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if code:
            return f"The tool failed with exit code {code}: {complaints or output}", True
        return output, False


async def _write_input(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):  # the command closed its input
        stream.write(data)
        await stream.drain()
    stream.close()


async def _read_all(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None  # noqa: S101 - it is a pipe
    data = bytearray()
    while chunk := await stream.read(_CHUNK_BYTES):
        data += chunk
        if len(data) > MAX_RESULT_BYTES:
            raise _TooLargeError
    return data.decode(errors="replace").strip()


_FILE_KEY = "$file"
_TTLS = {"5m": gateway.CACHE_TTL_FIVE_MINUTES, "1h": gateway.CACHE_TTL_ONE_HOUR}

_MAX_INT32 = 2**31 - 1
_MAX_SEED = 2**53 - 1
COMMAND_SERVER = "commands"
"""Name in a policy of the server of the tools that an agent file defines itself."""


def _check_server_name(name: str) -> str:
    if name == COMMAND_SERVER:
        raise ValueError(f"is the name of the file's own tools: {name}; choose another one")
    return name


_ServerName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$"), AfterValidator(_check_server_name)]
_Count = Annotated[int, Field(ge=0, le=_MAX_INT32)]
_Number = Annotated[float, Field(ge=0, strict=False, allow_inf_nan=False)]
_Dollars = Annotated[_Number, Field(le=MAX_DOLLARS)]
_Seconds = Annotated[_Number, Field(le=MAX_SECONDS)]


@dataclass(frozen=True, slots=True)
class AgentFile:
    """An agent manifest with the settings that only the command line uses.

    Attributes:
        manifest: the agent.
        budget: the limit of a run; None for no limit.
        commands: the tools that are commands of this machine, by name.
        servers: the commands or URLs of MCP servers, by name.
        policy: the compiled policy in front of the tools; None for none.
        directory: the folder of the file.
        decision_log: file of the decisions of the policy.
    """

    manifest: pb.Manifest
    budget: common.Budget | None
    commands: Mapping[str, CommandTool]
    servers: Mapping[str, tuple[str, ...]]
    policy: Path | None
    directory: Path
    decision_log: Path

    def phase(self, phase_id: str) -> pb.Phase:
        """Return the phase with an id.

        Raises:
            InvalidArgumentError: the file has no phase with this id.
        """
        for phase in self.manifest.phases:
            if phase.phase_id == phase_id:
                return phase
        known = ", ".join(phase.phase_id for phase in self.manifest.phases)
        raise InvalidArgumentError(f"phase {phase_id} is not in the file; use one of {known}")


class _FileTable(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Budget(_FileTable):
    max_calls: Annotated[int, Field(ge=0, le=MAX_CALLS)] = 0
    max_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] = 0
    max_dollars: _Dollars = 0
    max_seconds: _Seconds = 0

    def message(self) -> common.Budget:
        return make_budget(
            calls=self.max_calls,
            tokens=self.max_tokens,
            dollars=self.max_dollars,
            seconds=self.max_seconds,
        )


class _Cache(_FileTable):
    enabled: bool = True
    ttl: Literal["5m", "1h"] = "5m"
    expected_reuse: _Count = 0

    def message(self) -> gateway.CacheConfig:
        return gateway.CacheConfig(
            disabled=not self.enabled,
            ttl=_TTLS[self.ttl],
            expected_reuse=self.expected_reuse,
        )


class _Options(_FileTable):
    model: str = ""
    max_output_tokens: Annotated[int, Field(ge=1, le=_MAX_INT32)] | None = None
    temperature: _Number | None = None
    seed: Annotated[int, Field(ge=0, le=_MAX_SEED)] | None = None
    stop_sequences: list[str] = []
    fallback_models: list[str] = []
    cache: _Cache | None = None
    response_cache: Literal["off", "use", "refresh"] | None = None
    budget: _Budget | None = None

    def message(self) -> gateway.GenerationOptions:
        mode = "UNSPECIFIED" if self.response_cache is None else self.response_cache.upper()
        return gateway.GenerationOptions(
            model=self.model,
            max_output_tokens=self.max_output_tokens,
            temperature=self.temperature,
            seed=self.seed,
            stop_sequences=self.stop_sequences,
            fallback_models=self.fallback_models,
            cache=None if self.cache is None else self.cache.message(),
            response_cache=gateway.ResponseCacheMode.Value(f"RESPONSE_CACHE_MODE_{mode}"),
            budget=None if self.budget is None else self.budget.message(),
        )


class _History(_FileTable):
    strategy: Literal["compact", "sliding_window", "refuse"] = "compact"
    max_turns: _Count = 0
    max_input_tokens: _Count = 0

    def message(self) -> gateway.HistoryPolicy:
        strategy = gateway.HistoryStrategy.Value(f"HISTORY_STRATEGY_{self.strategy.upper()}")
        return gateway.HistoryPolicy(
            strategy=strategy,
            max_turns=self.max_turns,
            max_input_tokens=self.max_input_tokens,
        )


class _Tool(_FileTable):
    name: str
    description: str
    input_schema: dict[str, Any]
    strict: bool = False
    command: Annotated[list[str], Field(min_length=1)] | None = None
    timeout_seconds: Annotated[_Seconds, Field(gt=0)] = 60

    def message(self) -> gateway.Tool:
        return gateway.Tool(
            name=self.name,
            description=self.description,
            input_schema=json.dumps(self.input_schema).encode(),
            strict=self.strict,
        )


class _Phase(_FileTable):
    id: str
    input: str
    system: str = ""
    options: _Options | None = None
    tools: list[str] = []
    answer_schema: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    max_tool_rounds: _Count = 0

    def message(self) -> pb.Phase:
        document = self.answer_schema
        return pb.Phase(
            phase_id=self.id,
            system=self.system,
            input_template=self.input,
            options=None if self.options is None else self.options.message(),
            tool_names=self.tools,
            schema=None
            if document is None
            else gateway.ResponseSchema(name=self.id, document=json.dumps(document).encode()),
            max_tool_rounds=self.max_tool_rounds,
        )


class _Agent(_FileTable):
    name: str
    policy: Annotated[str, Field(min_length=1)] | None = None
    servers: dict[_ServerName, Annotated[list[str], Field(min_length=1)]] = {}
    system: str = ""
    options: _Options | None = None
    history: _History | None = None
    budget: _Budget | None = None
    tools: list[_Tool] = []
    phases: Annotated[list[_Phase], Field(min_length=1)]

    def message(self) -> pb.Manifest:
        return pb.Manifest(
            name=self.name,
            system=self.system,
            phases=[phase.message() for phase in self.phases],
            tools=[tool.message() for tool in self.tools],
            options=None if self.options is None else self.options.message(),
            history=None if self.history is None else self.history.message(),
        )


def read_agent(path: Path) -> AgentFile:
    """Read an agent file.

    `{ "$file" = "path" }` is replaced by the content of that file, relative to the agent file.

    Raises:
        InvalidArgumentError: the file cannot be read or is not valid; the violations list every problem.
    """
    try:
        document = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise _agent_file_error(path, [("", f"cannot be read: {error.strerror or error}")]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _agent_file_error(path, [("", f"is not TOML: {error}")]) from None
    problems: list[tuple[str, str]] = []
    document = _resolve_files(document, "", ReferencedFiles(path.parent), problems)
    try:
        agent = _Agent.model_validate(document)
    except ValidationError as error:
        raise _agent_file_error(path, [*problems, *_violations(error)]) from None
    if problems:
        raise _agent_file_error(path, problems)
    commands = {
        tool.name: CommandTool(tuple(tool.command), path.parent, tool.timeout_seconds)
        for tool in agent.tools
        if tool.command is not None
    }
    budget = None if agent.budget is None else agent.budget.message()
    return AgentFile(
        agent.message(),
        budget,
        commands,
        {name: tuple(command) for name, command in agent.servers.items()},
        None if agent.policy is None else path.parent / agent.policy,
        path.parent,
        path.with_name(f"{path.stem}.decisions.jsonl"),
    )


def _resolve_files(value: Any, place: str, files: ReferencedFiles, problems: list[tuple[str, str]]) -> Any:
    """Return a value with its file references resolved.

    A file that cannot be read is added to the problems.
    """
    if isinstance(value, list):
        return [_resolve_files(one, f"{place}[{at}]", files, problems) for at, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_FILE_KEY} and isinstance(value[_FILE_KEY], str):
        try:
            return files.read_value(value[_FILE_KEY])
        except ScriptFileError as error:
            problems.append((place, str(error)))
            return value
    return {name: _resolve_files(one, f"{place}.{name}", files, problems) for name, one in value.items()}


def _violations(error: ValidationError) -> Iterator[tuple[str, str]]:
    words = {"extra_forbidden": "is not a known key", "missing": "is required"}
    for found in error.errors(include_url=False, include_input=False):
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in found["loc"])
        yield place, words.get(found["type"], found["msg"].removeprefix("Value error, "))


def _agent_file_error(path: Path, problems: list[tuple[str, str]]) -> InvalidArgumentError:
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return InvalidArgumentError(
        f"agent file {path} is not valid: {count}",
        code="MANIFEST_INVALID",
        violations=[
            FieldViolation(f"{path}: {place.removeprefix('.')}" if place else "/", problem)
            for place, problem in problems
        ],
    )
