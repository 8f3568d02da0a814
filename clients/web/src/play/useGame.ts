// The state of an open game: its session, its turns, and the connection.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem, type ServerEvent } from "../api";
import { toProblem } from "../ui";
import { applyEvent, type Turns } from "./game";
import type { Opened, Source } from "./source";
import type { ActionCall } from "../types";

export interface Game {
  opened: Opened;
  turns: Turns;
  isConnected: boolean;
  /** True while a turn that this page has sent is in progress. */
  isBusy: boolean;
  /** Why the last turn was not played. */
  refused: Problem | undefined;
  /** Seats that have not submitted yet. */
  waiting: string[];
  play(turn: { input?: string; actions?: ActionCall[] }): Promise<boolean>;
  reload(): void;
  dismiss(): void;
}

export type GameState = { state: "loading" } | { state: "failed"; problem: Problem; retry: () => void } | (Game & { state: "ready" });

const FLUSH_MS = 16;
/** Past turns arrive at once, and are drawn together; those of a slow connection after this time. */
const REPLAY_MS = 400;

/** Returns the same texts as the same object, so that turns that have not changed are not drawn again. */
function keepStory(before: Opened | undefined, next: Opened): Opened {
  const isSame = before && JSON.stringify(before.story) === JSON.stringify(next.story);
  return isSame ? { ...next, story: before.story } : next;
}

export function useGame(source: Source): GameState {
  const [opened, setOpened] = useState<Opened>();
  const [turns, setTurns] = useState<Turns>([]);
  const [problem, setProblem] = useState<Problem>();
  const [isConnected, setConnected] = useState(true);
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Problem>();
  const [waiting, setWaiting] = useState<string[]>([]);
  const [generation, setGeneration] = useState(0);
  const reload = useCallback(() => setGeneration((before) => before + 1), []);
  const latest = useRef<Opened | undefined>(undefined);

  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    let queue: ServerEvent[] = [];
    let timer = 0;

    const fail = (error: unknown) => signal.aborted || setProblem(toProblem(error));
    const refresh = async () => {
      const next = keepStory(latest.current, await source.open(signal));
      if (signal.aborted) return;
      latest.current = next;
      setOpened(next);
    };
    const flush = () => {
      clearTimeout(timer);
      timer = 0;
      const events = queue;
      queue = [];
      setTurns((before) => events.reduce(applyEvent, before));
      for (const event of events) {
        if (event.name === "seat_acted") setWaiting(event.data.waiting_seat_ids ?? []);
        if (event.name === "accepted") setWaiting([]);
      }
      const isNew = events.some(
        (event) => event.name === "rewound" || (event.name === "diff" && event.data.turn > (latest.current?.session.turn ?? 0)),
      );
      if (isNew) refresh().catch(fail);
    };

    setTurns([]);
    setProblem(undefined);
    const opening = refresh();
    const listen = async () => {
      for await (const event of source.events(signal, setConnected)) {
        await opening;
        queue.push(event);
        const played = latest.current?.session.turn ?? 0;
        const isPast = event.data.turn <= played;
        if (isPast && event.name === "diff" && event.data.turn === played) flush();
        else timer ||= setTimeout(flush, isPast ? REPLAY_MS : FLUSH_MS) as unknown as number;
      }
    };
    Promise.all([opening, listen()]).catch(fail);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [source, generation]);

  const play = useCallback(
    async (turn: { input?: string; actions?: ActionCall[] }) => {
      setBusy(true);
      setRefused(undefined);
      try {
        const answer = await source.play({ ...turn, expected_turn: (latest.current?.session.turn ?? 0) + 1 });
        if (answer?.waiting_seat_ids) setWaiting(answer.waiting_seat_ids);
        const next = keepStory(latest.current, await source.open(new AbortController().signal));
        latest.current = next;
        setOpened(next);
        return true;
      } catch (error) {
        const found = toProblem(error);
        setTurns((before) => before.filter((one) => one.committed));
        setRefused(found);
        if (found.code === "STALE_TURN" || found.code === "TURN_REWOUND") reload();
        return false;
      } finally {
        setBusy(false);
      }
    },
    [source],
  );

  if (problem) return { state: "failed", problem, retry: reload };
  if (!opened) return { state: "loading" };
  const dismiss = () => setRefused(undefined);
  return { state: "ready", opened, turns, isConnected, isBusy, refused, waiting, play, reload, dismiss };
}
