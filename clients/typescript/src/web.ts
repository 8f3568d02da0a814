/** Client for browsers: the Connect protocol over `fetch`, to the HTTP edge. */

import { createConnectTransport } from "@connectrpc/connect-web";
import type { ConnectOptions } from "./calls.js";
import { Client } from "./client.js";

export * from "./index.js";

/** Options of a connection over HTTP. */
export interface WebOptions extends ConnectOptions {
  /** Replacement of `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * Open a client of the HTTP edge. A page of another origin needs `PERIPETY_EDGE_ORIGINS` on the server.
 *
 * @param address - URL of the edge, such as `http://127.0.0.1:50080`, or `host:port`.
 */
export function connect(address: string, options: WebOptions = {}): Client {
  const baseUrl = /^https?:\/\//.test(address) ? address : `http://${address}`;
  return new Client(createConnectTransport({ baseUrl, useBinaryFormat: true, fetch: options.fetch }), options);
}
