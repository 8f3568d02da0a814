"""Scripted LLM: a server that emulates the wire formats and the rules of model providers.

scenario = ScenarioBuilder().respond_to("hello", "Hello!").build()
with Simulator(scenario) as simulator:
    assert simulator.execute("hello there").text == "Hello!"
    simulator.captured.assert_received("hello")
"""

from peripety.simulator.delivery.events import (
    Event,
    Finished,
    InterruptedAnswerError,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    UnreadableAnswerError,
)
from peripety.simulator.in_process import Answer
from peripety.simulator.model import ApiError, ErrorKind, Stop, Tool, ToolCall, Usage
from peripety.simulator.scenario.builder import ScenarioBuilder
from peripety.simulator.scenario.load import load_scenario, read_scenario
from peripety.simulator.scenario.model import Failure, Scenario
from peripety.simulator.scenario.write import write_scenario
from peripety.simulator.simulator import Simulator

__all__ = [
    "Answer",
    "ApiError",
    "ErrorKind",
    "Event",
    "Failure",
    "Finished",
    "InterruptedAnswerError",
    "ReasoningDelta",
    "RefusalDelta",
    "Scenario",
    "ScenarioBuilder",
    "Simulator",
    "Stop",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "UnreadableAnswerError",
    "Usage",
    "load_scenario",
    "read_scenario",
    "write_scenario",
]
