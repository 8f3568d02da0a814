// Compiles a scenario, starts a session and plays one turn.
import { readFileSync } from "node:fs";
import { connect } from "@peripety/client";

const client = connect(process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051");

let scenarioId = "";
const spec = readFileSync("scenario.json");
for await (const { event } of client.scenarios.compileScenario({ source: { case: "spec", value: spec } })) {
  if (event.case === "compiled") scenarioId = event.value.scenarioId;
  if (event.case === "rejected") throw new Error(event.value.findings?.findings[0]?.message);
}

const { session } = await client.sessions.createSession({ scenarioId, seed: 7n });
console.log("legal:", session!.legalActions.map((action) => action.actionId).join(", "));
for await (const { event } of client.play(session!, { actions: [{ actionId: "tend" }] })) {
  if (event.case === "narrativeChunk") process.stdout.write(event.value.text);
  if (event.case === "committed") console.log(`\nturn 1 is stored, chain hash ${event.value.chainHash}`);
}
client.close();
