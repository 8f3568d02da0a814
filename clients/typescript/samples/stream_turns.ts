// Plays until the run ends, and prints each event as it arrives.
import { readFileSync } from "node:fs";
import { connect } from "@peripety/client";
import { RunStatusKind } from "@peripety/client/api/common/v1/engine";

const client = connect(process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051");
const work = client.follow(client.scenarios.compileScenario, {
  source: { case: "spec", value: readFileSync("scenario.json") },
});
let scenarioId = "";
for await (const { event } of work) {
  if (event.case === "progress") console.log(`${Math.round(event.value.fraction * 100)} % ${event.value.message}`);
  if (event.case === "compiled") scenarioId = event.value.scenarioId;
}

const { session } = await client.sessions.createSession({ scenarioId, seed: 7n });
while (session!.status?.kind === RunStatusKind.ONGOING) {
  const actionId = session!.legalActions.some((action) => action.actionId === "wait") ? "wait" : "tend";
  for await (const { sequence, event } of client.play(session!, { actions: [{ actionId }] })) {
    switch (event.case) {
      case "accepted":
        console.log(`${sequence} turn ${session!.turn + 1n}: ${actionId}`); // discard earlier events of the turn
        break;
      case "actionResolved":
      case "worldResolved":
        for (const { path, after } of event.value.changes) {
          console.log(`${sequence} ${path} = ${new TextDecoder().decode(after)}`);
        }
        break;
      case "narrativeChunk":
        console.log(`${sequence} ${event.value.text}`);
        break;
      case "committed":
        console.log(`${sequence} ${RunStatusKind[event.value.status!.kind]}`);
    }
  }
}
client.close();
