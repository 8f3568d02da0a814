// Where a game comes from: a session of one's own, or a link to one.
import { follow, get, playTurn, post, rpc, type ServerEvent } from "../api";
import type { ActionCall, Session, Story } from "../types";

export interface Opened {
  session: Session;
  story: Story;
  /** Seat that the reader plays; empty for none or for all. */
  seatId: string;
  /** True if the reader may act. */
  canAct: boolean;
}

export interface Source {
  /** True if the reader owns the session: undo, branches, questions, odds and links. */
  isOwner: boolean;
  open(signal: AbortSignal): Promise<Opened>;
  events(signal: AbortSignal, onConnection: (connected: boolean) => void): AsyncGenerator<ServerEvent>;
  play(turn: { input?: string; actions?: ActionCall[]; expected_turn: number }): Promise<any>;
}

/** The session with an id, from a point of view; without one, from that of the only playable entity. */
export function ownSource(id: string, pov: string | undefined): Source & { pov(): string } {
  const path = `/sessions/${encodeURIComponent(id)}`;
  let chosen = pov ?? "";
  let choosing: Promise<void> | undefined;
  const findOnlyPerson = async () => {
    const people = (await get<Story>(`${path}/story`)).entities.filter((one) => one.playable);
    if (people.length === 1) chosen = people[0]!.id;
  };
  const getQuery = async () => {
    if (pov === undefined) {
      choosing ??= findOnlyPerson();
      await choosing.catch((error: unknown) => {
        choosing = undefined;
        throw error;
      });
    }
    return `?pov=${encodeURIComponent(chosen)}`;
  };
  return {
    isOwner: true,
    pov: () => chosen,
    async open(signal) {
      const query = await getQuery();
      const [session, story] = await Promise.all([
        get<Session>(path + query, signal),
        get<Story>(`${path}/story${query}`, signal),
      ]);
      return { session, story, seatId: session.next_seat_id ?? "", canAct: !session.seat_config };
    },
    async *events(signal, onConnection) {
      yield* follow(`${path}/events${await getQuery()}`, signal, onConnection);
    },
    play: (turn) => playTurn(`${path}/turns`, { ...turn, pov: chosen }),
  };
}

/** The session of a link. */
export function linkSource(token: string): Source {
  const path = `/links/${encodeURIComponent(token)}`;
  return {
    isOwner: false,
    async open(signal) {
      const opened = await get<{ session: Session; story: Story; seat_id: string }>(path, signal);
      const { session, story, seat_id: seatId } = opened;
      const mayGo = session.seat_config?.order === "simultaneous" || (session.next_seat_id ?? "") === seatId;
      return { session, story, seatId, canAct: seatId !== "" && mayGo };
    },
    events: (signal, onConnection) => follow(`${path}/events`, signal, onConnection),
    play: (turn) => playTurn(`${path}/turns`, turn),
  };
}

export function forkSession(sessionId: string, turn: number, pov: string): Promise<{ session: Session }> {
  return rpc("SessionService/ForkSession", { session_id: sessionId, turn, pov_entity_id: pov });
}

export function rewindSession(sessionId: string, turn: number, expected: number): Promise<unknown> {
  return rpc("SessionService/RewindSession", { session_id: sessionId, turn, expected_turn: expected });
}

export function askSession(
  sessionId: string,
  question: string,
  pov: string,
): Promise<{ answer: string; found?: boolean; turns?: number[] }> {
  return rpc("SessionService/AskSession", { session_id: sessionId, question, pov_entity_id: pov });
}

export function makeLink(sessionId: string, pov: string, seatId = ""): Promise<{ token: string; path: string }> {
  return post(`/sessions/${encodeURIComponent(sessionId)}/links`, seatId ? { seat_id: seatId } : { pov });
}
