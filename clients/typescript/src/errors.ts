/** Errors of calls, with the reason, the invalid fields and the retry hint of the server. */

import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";
import type { ItemError } from "./gen/peripety/api/common/v1/common_pb.js";
import type { ErrorReason } from "./gen/peripety/api/common/v1/error_reason_pb.js";

/** Name of a value of the enum `ErrorReason`, such as `STALE_TURN`. */
export type Reason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/** An invalid field of a request. */
export interface FieldViolation {
  /** Path of the field in the request, such as `actions[0].params[amount]`. */
  readonly field: string;
  /** The problem and the remedy in one sentence. */
  readonly description: string;
}

interface ErrorDetails {
  readonly reason?: string;
  readonly violations?: readonly FieldViolation[];
  readonly retryAfterMs?: number | undefined;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** Error of a call, or of one item of a batch. */
export class PeripetyError extends Error {
  override readonly name = "PeripetyError";
  /** Status code of gRPC. */
  readonly code: Code;
  /**
   * Reason set by the server. It is a `Reason`, the code of a finding, or a reason of a newer server. Empty if the
   * error did not come from a Peripety server: the connection failed, or a proxy answered.
   */
  readonly reason: Reason | (string & {}) | "";
  /** Invalid fields of the request, worst first. */
  readonly violations: readonly FieldViolation[];
  /** Time to wait before a retry, in milliseconds; undefined if the server sent none. */
  readonly retryAfterMs: number | undefined;
  /** Identifiers and limits that the message refers to. */
  readonly metadata: Readonly<Record<string, string>>;

  constructor(message: string, code: Code, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.reason = details.reason ?? "";
    this.violations = details.violations ?? [];
    this.retryAfterMs = details.retryAfterMs;
    this.metadata = details.metadata ?? {};
  }

  /** Return true if the error has one of these reasons. A misspelt reason does not compile. */
  is(...reasons: Reason[]): boolean {
    return (reasons as string[]).includes(this.reason);
  }

  /**
   * True if the connection or the server was lost, so that the effect of the call is unknown. Send the same request
   * with the same `requestId` again.
   */
  get isConnectionLost(): boolean {
    if (this.reason !== "") return this.code === Code.Unavailable;
    return LOST.has(this.code);
  }

  /** Convert anything that a call throws. */
  static from(error: unknown): PeripetyError {
    if (error instanceof PeripetyError) return error;
    const failed = ConnectError.from(error, Code.Unknown);
    const info = failed.findDetails(ErrorInfoSchema).find((detail) => detail.domain === "peripety");
    const delay = failed.findDetails(RetryInfoSchema)[0]?.retryDelay;
    return new PeripetyError(info ? failed.rawMessage : localMessage(failed), failed.code, {
      reason: info?.reason ?? "",
      violations: failed.findDetails(BadRequestSchema).flatMap((detail) => detail.fieldViolations.map(violationOf)),
      retryAfterMs: delay && milliseconds(delay),
      metadata: info?.metadata ?? {},
      cause: failed,
    });
  }

  /** Convert the error of one item of a batch, such as `SpecVerdict.error`. */
  static fromItem(item: ItemError): PeripetyError {
    return new PeripetyError(item.message, item.code, {
      reason: item.reason,
      violations: item.violations.map(violationOf),
      retryAfterMs: item.retryAfter && milliseconds(item.retryAfter),
      metadata: item.metadata,
    });
  }
}

/** Codes without a reason that a broken connection or a proxy causes. */
const LOST = new Set([Code.Unavailable, Code.Aborted, Code.Internal, Code.Unknown, Code.DataLoss]);

function localMessage(error: ConnectError): string {
  switch (error.code) {
    case Code.Unavailable:
      return `server does not respond (${error.rawMessage}); check that it runs at this address`;
    case Code.DeadlineExceeded:
      return `server did not respond in time (${error.rawMessage}); increase timeoutMs`;
    case Code.Unimplemented:
      return `server does not implement this call (${error.rawMessage}); it may be an older version`;
    default:
      return error.rawMessage;
  }
}

function violationOf({ field, description }: FieldViolation): FieldViolation {
  return { field, description };
}

function milliseconds(duration: { seconds: bigint; nanos: number }): number {
  return Number(duration.seconds) * 1000 + duration.nanos / 1e6;
}
