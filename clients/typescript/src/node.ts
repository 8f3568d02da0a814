/** Client for Node.js: gRPC over HTTP/2. */

import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { SecureClientSessionOptions } from "node:http2";
import type { ConnectOptions } from "./calls.js";
import { Client } from "./client.js";

export * from "./index.js";

/** Options of a connection over gRPC. */
export interface NodeOptions extends ConnectOptions {
  /** Certificates: `ca` of a private authority, `cert` and `key` of this client. Makes `host:port` a TLS address. */
  readonly tls?: Pick<SecureClientSessionOptions, "ca" | "cert" | "key" | "servername" | "rejectUnauthorized">;
  /** Longest message in bytes, 4 MiB by default, as on the server. */
  readonly maxMessageBytes?: number;
  /**
   * Silence before a ping is sent, and time for its answer, in milliseconds; 30,000 and 10,000 by default. The server
   * ends connections that are pinged more than every 20 seconds.
   */
  readonly keepalive?: { readonly intervalMs: number; readonly timeoutMs: number };
}

/**
 * Open a client of the server at an address. It connects at its first call.
 *
 * @param address - `host:port`, or a URL with `http:` or `https:`.
 */
export function connect(address: string, options: NodeOptions = {}): Client {
  const baseUrl = /^https?:\/\//.test(address) ? address : `${options.tls ? "https" : "http"}://${address}`;
  const { intervalMs, timeoutMs } = options.keepalive ?? { intervalMs: 30_000, timeoutMs: 10_000 };
  const sessionManager = new Http2SessionManager(
    baseUrl,
    { pingIntervalMs: intervalMs, pingTimeoutMs: timeoutMs },
    options.tls,
  );
  const bytes = options.maxMessageBytes ?? 4 * 1024 * 1024;
  const transport = createGrpcTransport({ baseUrl, sessionManager, readMaxBytes: bytes, writeMaxBytes: bytes });
  // A connection that has just failed reports its error a moment later. If it is aborted before that, the session manager
  // has removed its listener, and the error would end the process.
  return new Client(transport, options, () => setImmediate(() => setImmediate(() => sessionManager.abort())));
}
