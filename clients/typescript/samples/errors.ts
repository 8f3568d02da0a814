// Receives an unknown id, a stale turn and an invalid field, and decides by the reason.
import { readFileSync } from "node:fs";
import { connect, PeripetyError } from "@peripety/client";

const client = connect(process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051");

async function explain(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof PeripetyError)) throw error;
    if (error.is("UNKNOWN_SESSION")) console.log(`gone, start a new game: ${error.message}`);
    else if (error.is("STALE_TURN")) console.log(`read the session again: ${error.message}`);
    else if (error.violations.length > 0) console.log(`correct ${error.violations[0]!.field}: ${error.message}`);
    else if (error.retryAfterMs !== undefined) console.log(`try again in ${error.retryAfterMs} ms`);
    else throw error;
  }
}

let scenarioId = "";
const spec = readFileSync("scenario.json");
for await (const { event } of client.scenarios.compileScenario({ source: { case: "spec", value: spec } })) {
  if (event.case === "compiled") scenarioId = event.value.scenarioId;
}
const { session } = await client.sessions.createSession({ scenarioId });

await explain(client.sessions.getSession({ sessionId: "unknown" }));
await explain(client.play({ sessionId: session!.sessionId, turn: 8n }).next());
await explain(client.sessions.listSessions({ pageSize: -1 }));
client.close();
