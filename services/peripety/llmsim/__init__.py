"""Scripted LLM: a server that emulates the wire formats and the rules of model providers.

script = ScriptBuilder().respond_to("hello", "Hello!").build()
with Simulator(script) as simulator:
    assert simulator.execute("hello there").text == "Hello!"
    simulator.captured.assert_received("hello")
"""

from peripety.llmsim.in_process import (
    Event,
    FinishedEvent,
    InterruptedAnswerError,
    ReasoningDeltaEvent,
    RefusalDeltaEvent,
    SimAnswer,
    TextDeltaEvent,
    ToolCallDeltaEvent,
    UnreadableAnswerError,
)
from peripety.llmsim.script.files import ScriptBuilder, load_script, parse_script, write_script
from peripety.llmsim.script.types import Fault, Script
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import ApiError, ApiErrorKind, BilledUsage, SimStopReason, SimTool, SimToolCall

__all__ = [
    "ApiError",
    "ApiErrorKind",
    "BilledUsage",
    "Event",
    "Fault",
    "FinishedEvent",
    "InterruptedAnswerError",
    "ReasoningDeltaEvent",
    "RefusalDeltaEvent",
    "Script",
    "ScriptBuilder",
    "SimAnswer",
    "SimStopReason",
    "SimTool",
    "SimToolCall",
    "Simulator",
    "TextDeltaEvent",
    "ToolCallDeltaEvent",
    "UnreadableAnswerError",
    "load_script",
    "parse_script",
    "write_script",
]
