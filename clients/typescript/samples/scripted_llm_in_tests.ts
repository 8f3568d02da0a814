// Plays against a server whose model is scripted, and asserts the narration.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { connect } from "@peripety/client";

// MODEL_PROVIDER=scripted PERIPETY_SCRIPT=clients/samples/script.toml peripety serve
const client = connect(process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051");
after(() => client.close());

async function startSession() {
  let scenarioId = "";
  const spec = readFileSync("scenario.json");
  for await (const { event } of client.scenarios.compileScenario({ source: { case: "spec", value: spec } })) {
    if (event.case === "compiled") scenarioId = event.value.scenarioId;
  }
  return (await client.sessions.createSession({ scenarioId, seed: 7n })).session!;
}

async function narrate(input: string): Promise<string> {
  let narrative = "";
  for await (const { event } of client.play(await startSession(), { actions: [{ actionId: "tend" }], input })) {
    if (event.case === "committed") narrative = event.value.narrative;
  }
  return narrative;
}

test("the narrator answers from the script", async () => {
  assert.match(await narrate("I listen"), /^There is only the wind\./);
  assert.match(await narrate("I go on"), /^The watch goes on\./);
});
