/** Exports that Node.js and browsers share. */

export { Code } from "@connectrpc/connect";
export type { SpecDocument } from "./batch.js";
export type { ConnectOptions } from "./calls.js";
export { Client } from "./client.js";
export { PeripetyError, type FieldViolation, type Reason } from "./errors.js";
export { isEnd, type PlayedSession, type StreamOptions, type TurnInput } from "./streams.js";
export { TranscriptError, canonicalize, verifyTranscript, type VerifiedTranscript } from "./transcript.js";
