import { readFileSync } from "node:fs";
import { Compiler } from "inkjs/full";
import { connect } from "@peripety/client/web";
import { tell } from "@peripety/ink";

const client = connect(process.env.PERIPETY_URL ?? "http://127.0.0.1:50080");
const compile = { source: { case: "spec", value: readFileSync("scenario.json") } };
let scenarioId = "";
for await (const { event } of client.scenarios.compileScenario(compile)) {
  if (event.case === "compiled") scenarioId = event.value.scenarioId;
}
const { session } = await client.sessions.createSession({ scenarioId, seed: 7n });

const story = new Compiler(readFileSync("story.ink", "utf8")).Compile();
for await (const { line, event } of tell(story, client, session)) {
  console.log(line ? `story: ${line.trim()}` : `turn: ${event.event.case} ${event.event.value.text ?? ""}`);
}
console.log("choices:", ...story.currentChoices.map((choice) => choice.text));
client.close();
