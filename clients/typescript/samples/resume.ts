// Loses the connection within a turn, and continues behind the last event.
import { readFileSync } from "node:fs";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { connect } from "@peripety/client";

const [host, port] = (process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051").split(":");
const connections: Socket[] = [];
const proxy = createServer((socket) => {
  const server = connectTcp(Number(port), host!);
  socket.pipe(server).pipe(socket);
  for (const side of [socket, server]) side.on("error", () => {});
  connections.push(socket, server);
});
await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
const client = connect(`127.0.0.1:${(proxy.address() as { port: number }).port}`);

let scenarioId = "";
const spec = readFileSync("scenario.json");
for await (const { event } of client.scenarios.compileScenario({ source: { case: "spec", value: spec } })) {
  if (event.case === "compiled") scenarioId = event.value.scenarioId;
}
const { session } = await client.sessions.createSession({ scenarioId, seed: 7n });

let isCut = false;
const onReconnect = (error: Error): void => console.log(`connection lost: ${error.message}`);
for await (const { sequence, event } of client.play(session!, { actions: [{ actionId: "tend" }], onReconnect })) {
  console.log(`${sequence} ${event.case}`);
  if (!isCut) for (const socket of connections) socket.destroy();
  isCut = true;
}
client.close();
proxy.close();
