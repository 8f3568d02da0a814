/** A TCP proxy that misbehaves, one fault for each connection. */

import { connect, createServer, type Server, type Socket } from "node:net";

/** What happens to the bytes from the server on one connection. */
export type Fault =
  | { readonly kind: "none" }
  /** The connection is reset behind `at` bytes. */
  | { readonly kind: "cut"; readonly at: number }
  /** The connection ends in an orderly way behind `at` bytes. */
  | { readonly kind: "end"; readonly at: number }
  /** Behind `at` bytes nothing is forwarded in either direction, and nothing is closed. */
  | { readonly kind: "halfOpen"; readonly at: number }
  /** Each byte is sent on its own. */
  | { readonly kind: "trickle" }
  /** GOAWAY is sent behind the first frame, and the connection is reset behind `at` bytes. */
  | { readonly kind: "goAway"; readonly at: number };

export class Proxy {
  /** Bytes from the server on the last connection. */
  received = 0;
  /** Number of connections so far. */
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #faults: Fault[] = [];

  private constructor(target: string) {
    const [host, port] = target.split(":");
    this.#server = createServer((client) => {
      const fault = this.#faults.shift() ?? { kind: "none" };
      this.connections += 1;
      this.received = 0;
      const server = connect({ host: host!, port: Number(port), noDelay: true });
      client.setNoDelay(true);
      let isSilent = false;
      for (const [socket, other] of [[client, server], [server, client]] as const) {
        this.#sockets.add(socket);
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          if (!isSilent) other.end();
        });
      }
      client.on("data", (data) => isSilent || server.write(data));
      server.on("data", (data) => {
        if (isSilent) return;
        const before = this.received;
        this.received += data.length;
        isSilent = forward(client, data, before, fault);
        if (isSilent && fault.kind !== "halfOpen") server.destroy();
      });
    });
  }

  static async start(target: string): Promise<Proxy> {
    const proxy = new Proxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Set the faults of the next connections, in order; later ones have none. */
  inject(...faults: Fault[]): void {
    this.#faults = faults;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

/** NO_ERROR, with the highest stream id: streams that are open may end. */
const GO_AWAY = Buffer.from("0000080700000000007fffffff00000000", "hex");

/** Forward bytes, and return true if the fault has occurred. */
function forward(client: Socket, data: Buffer, before: number, fault: Fault): boolean {
  if (fault.kind === "none") {
    client.write(data);
    return false;
  }
  if (fault.kind === "trickle") {
    for (const byte of data) client.write(Buffer.of(byte));
    return false;
  }
  const room = fault.at - before;
  let part = data.subarray(0, Math.max(0, room));
  if (fault.kind === "goAway" && before === 0 && part.length === data.length && data.length >= 9) {
    const frame = 9 + data.readUIntBE(0, 3);
    part = Buffer.concat([data.subarray(0, frame), GO_AWAY, data.subarray(frame)]);
  }
  if (part.length > 0) client.write(part);
  if (data.length < room) return false;
  if (fault.kind === "cut") client.resetAndDestroy();
  if (fault.kind === "end" || fault.kind === "goAway") client.end();
  return true;
}
