// Decides on tool calls, and compares with what is expected.
import { readFileSync } from "node:fs";
import { connect } from "@peripety/client";
import { Decision } from "@peripety/client/api/policy/v1/policy";

interface ToolCall {
  tool_name: string;
  arguments: object;
  expected: string;
}

const client = connect(process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051");
const policy = { source: { case: "document" as const, value: readFileSync("policy.json") } };

for (const call of JSON.parse(readFileSync("policy_calls.json", "utf8")) as ToolCall[]) {
  const { result } = await client.policies.decide({
    policy,
    request: {
      serverName: "files",
      toolName: call.tool_name,
      arguments: new TextEncoder().encode(JSON.stringify(call.arguments)),
    },
  });
  const decision = Decision[result!.decision].toLowerCase();
  console.log(`${decision}: ${call.tool_name} ${JSON.stringify(call.arguments)}: ${result!.reasons[0] ?? "no rule"}`);
  if (decision !== call.expected) throw new Error(`expected ${call.expected}`);
}
client.close();
