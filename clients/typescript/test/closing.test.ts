import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { connect } from "@peripety/client";
import { ADDRESS, EDGE, newSession } from "./support/game.js";

const LONGEST_MS = 20_000;

const direct = connect(ADDRESS);
const { sessionId } = await newSession(direct);
direct.close();

/** Parts of a program that closes its client afterwards. `s` is a session. */
const PROGRAMS = {
  "a call": "await client.sessions.listSessions({})",
  "an error": "await client.sessions.getSession({ sessionId: 'unknown' }).catch(() => {})",
  "a pending call": "client.sessions.listSessions({}).catch(() => {})",
  "a turn": "for await (const event of client.play(s));",
  "a turn whose loop is left": "for await (const event of client.play(s)) break;",
  "a turn that is not read to its end": "await client.play(s).next()",
  "a pending watch": 
    "client.watch({ sessionId: s.sessionId, afterSequence: s.lastSequence }).next().catch(() => {});" +
    "await new Promise((done) => setTimeout(done, 200))",
  "a call after it": "client.close(); await client.sessions.listSessions({}).then(() => process.exit(1), () => {})",
};

for (const [module, address] of [["@peripety/client", ADDRESS], ["@peripety/client/web", EDGE]]) {
  for (const [name, part] of Object.entries(PROGRAMS)) {
    test(`${module}: a program ends when it has closed its client after ${name}`, async () => {
      const program = `
        import { connect } from "${module}";
        const client = connect("${address}");
        const { session: s } = await client.sessions.getSession({ sessionId: "${sessionId}" });
        ${part};
        client.close();`;
      const started = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: "inherit", timeout: LONGEST_MS });
      assert.deepEqual(await once(started, "exit"), [0, null]);
    });
  }
}
