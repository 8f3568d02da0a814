// Plays the turn of a test in an existing session from a story, and prints its events.
import { Compiler } from "inkjs/full";
import { connect } from "@peripety/client/web";
import { tell } from "@peripety/ink";

const NAMES = { actionResolved: "action", worldResolved: "world", narrativeChunk: "narrative_chunk", committed: "diff" };
const { PERIPETY_URL: url, PERIPETY_SESSION: sessionId, PERIPETY_ACTION: action } = process.env;
const client = connect(url);
const story = new Compiler(`EXTERNAL turn(action, input)
VAR light = 0
VAR status = ""
Light is {light}.
~ status = turn("${action}", "I listen.")
Light is {light}, {status}.
`).Compile();
try {
  const { session } = await open();
  const lines = [];
  for await (const { line, event } of tell(story, client, session)) {
    if (line) lines.push(line);
    if (!event) continue;
    const name = NAMES[event.event.case] ?? event.event.case;
    console.log(`${event.sequence} ${name} ${JSON.stringify(event.event.value.text ?? "")}`);
  }
  if (lines.join("") !== "Light is 9.\nLight is 8.2, ongoing.\n") throw new Error(lines.join(""));
  console.log(`turn ${session.turn} ${story.variablesState.status} ${session.chainHash}`);
} catch (error) {
  if (error.name !== "PeripetyError") throw error;
  console.log(`error ${error.reason} ${{ 3: 400, 5: 404 }[error.code] ?? 0}`);
  for (const violation of error.violations) console.log(`violation ${violation.field}`);
}
client.close();

/** The client repeats streams over HTTP, but not this call. */
async function open(tries = 10) {
  try {
    return await client.sessions.getSession({ sessionId });
  } catch (error) {
    if (tries === 1 || !error.isConnectionLost) throw error;
    return open(tries - 1);
  }
}
