// The game: the story in the middle, what can be done beside it, and where it stands.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api";
import { post } from "../api";
import { number, t } from "../i18n";
import { go } from "../router";
import { clean } from "../text";
import type { ActionCall, Session, Story } from "../types";
import { Icon, ProblemBox, Sheet, Skeleton, toProblem, useMedia, useTitle } from "../ui";
import { Actions, Words } from "./Composer";
import { Ending, jump } from "./Ending";
import { nameOf, nameOfEvent, nameOfId, netChanges, quantitiesOf, type Quantity, type TurnView } from "./game";
import { askSession, forkSession, linkSource, makeLink, ownSource, rewindSession, type Source } from "./source";
import { Standing } from "./Standing";
import { Turn } from "./Turn";
import { useGame, type Game } from "./useGame";

const NARROW = "(max-width: 47.49rem)";
/** The latest turns of a game are drawn first, and earlier ones some at a time. */
const FIRST_DRAWN = 4;
const DRAWN_MORE = 8;
/** True once any element had the focus; a page that was just opened keeps it where the browser puts it. */
let hasFocused = false;
document.addEventListener("focusin", () => (hasFocused = true), { once: true });

export default function PlayView({ id, token, pov }: { id?: string; token?: string; pov?: string }) {
  const source = useMemo<Source>(() => (token ? linkSource(token) : ownSource(id!, pov)), [id, token, pov]);
  const game = useGame(source);
  if (game.state === "failed") {
    return (
      <main id="main" class="page narrow">
        <ProblemBox problem={game.problem} retry={game.retry} />
        <p>
          <a href="#/">{t("home.back")}</a>
        </p>
      </main>
    );
  }
  if (game.state === "loading") {
    return (
      <main id="main" class="play loading">
        <div class="story-pane">
          <div class="story">
            <Skeleton lines={9} label={t("play.loading")} />
          </div>
        </div>
      </main>
    );
  }
  return <OpenGame game={game} source={source} />;
}

interface Note {
  /** Turn after which it is shown. */
  turn: number;
  question: string;
  answer: string;
  turns: number[];
}

function OpenGame({ game, source }: { game: Game; source: Source }) {
  const { opened, turns } = game;
  const { session, story } = opened;
  const pov = session.pov_entity_id ?? "";
  const isNarrow = useMedia(NARROW);
  const [sheet, setSheet] = useState<"" | "actions" | "standing" | "links">("");
  const [notes, setNotes] = useState<Note[]>([]);
  const [problem, setProblem] = useState<Problem>();
  useTitle(story.name);

  const last = turns[turns.length - 1];
  const isOver = session.status.kind !== "ongoing";
  const isTelling = game.isBusy || (last !== undefined && !last.committed);
  const isHistoryComplete = (session.turn ?? 0) === 0 || (last?.turn ?? 0) >= (session.turn ?? 0);
  const canAct = opened.canAct && !isOver;
  // Where the game begins, ends or is taken back, the button that had the focus is gone.
  useEffect(() => {
    if (document.activeElement !== document.body || !hasFocused) return;
    const place = document.querySelector<HTMLElement>(".ending") ?? document.querySelector<HTMLElement>(".story-pane");
    place?.focus({ preventScroll: true });
  }, [session.session_id, isOver]);

  const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => setProblem(toProblem(error)));
  const act = (call: ActionCall) => {
    setSheet("");
    void game.play({ actions: [call] });
  };
  const ask = (question: string) =>
    attempt(
      askSession(session.session_id, question, pov).then((found) =>
        setNotes((before) => [
          ...before,
          { turn: session.turn ?? 0, question, answer: found.answer, turns: found.turns ?? [] },
        ]),
      ),
    );
  const undo = () =>
    attempt(rewindSession(session.session_id, (session.turn ?? 0) - 1, session.turn ?? 0).then(() => game.reload()));
  // The same function at each drawing, so that turns that have not changed are not drawn again.
  const fork = useCallback(
    (turn: number) =>
      void attempt(forkSession(session.session_id, turn, pov).then((made) => go(playPath(made.session.session_id, pov)))),
    [session.session_id, pov],
  );
  const again = () =>
    attempt(
      post<Session>("/sessions", { scenario_id: session.scenario_id, pov, seed: Math.floor(Math.random() * 2 ** 31) }).then(
        (made) => go(playPath(made.session_id, pov)),
      ),
    );

  const actions = (
    <section class="panel actions-panel" aria-labelledby="actions-title">
      <h2 id="actions-title" class="panel-title">
        {t("actions")}
      </h2>
      {canAct ? (
        <Actions actions={session.legal_actions ?? []} turn={session.turn ?? 0} story={story} disabled={isTelling} onAct={act} />
      ) : (
        <p class="quiet">{isOver ? t("actions.over") : waitingText(game, source)}</p>
      )}
    </section>
  );
  const isPlayer = source.isOwner || Boolean(opened.seatId);
  const standing = (
    <Standing session={session} story={story} turns={turns} pov={pov} isOwner={source.isOwner} isPlayer={isPlayer} />
  );

  return (
    <main id="main" class={source.isOwner || canAct ? "play" : "play watching"}>
      <GameBar
        session={session}
        story={story}
        isOwner={source.isOwner}
        isConnected={game.isConnected}
        isTelling={isTelling}
        isLoading={!isHistoryComplete}
        onUndo={(session.turn ?? 0) > 0 && !isTelling ? undo : undefined}
        onAgain={again}
        onLinks={() => setSheet("links")}
      />
      {isNarrow && <Strip quantities={quantitiesOf(session, story, turns)} onOpen={() => setSheet("standing")} />}
      <StoryPane
        game={game}
        story={story}
        notes={notes}
        isHistoryComplete={isHistoryComplete}
        onFork={source.isOwner ? fork : undefined}
        onUndo={source.isOwner ? undo : undefined}
        onAgain={source.isOwner ? again : undefined}
        problem={problem}
        onDismiss={() => setProblem(undefined)}
      />
      {canAct && (
        <div class="dock">
          {isNarrow && (
            <button class="button choose" onClick={() => setSheet("actions")} aria-disabled={isTelling}>
              <Icon name="list" /> {t("actions.choose", { n: session.legal_actions?.length ?? 0 })}
            </button>
          )}
          <Words
            disabled={isTelling}
            canAsk={source.isOwner}
            canWait
            onSay={(input) => game.play({ input })}
            onAsk={ask}
            onWait={() => void game.play({})}
          />
        </div>
      )}
      {!isNarrow && (
        <aside class="side" aria-label={t("side")}>
          {isPlayer && <div class="side-actions">{actions}</div>}
          <div class="side-standing" role="group" aria-label={t(isPlayer ? "standing" : "standing.watched")} tabIndex={0}>
            {standing}
          </div>
        </aside>
      )}
      {sheet === "actions" && (
        <Sheet title={t("actions")} onClose={() => setSheet("")}>
          <Actions actions={session.legal_actions ?? []} turn={session.turn ?? 0} story={story} disabled={isTelling} onAct={act} />
        </Sheet>
      )}
      {sheet === "standing" && (
        <Sheet title={clean(story.name)} onClose={() => setSheet("")}>
          {standing}
        </Sheet>
      )}
      {sheet === "links" && <Links session={session} story={story} pov={pov} onClose={() => setSheet("")} />}
      <Announcer turns={turns} story={story} isHistoryComplete={isHistoryComplete} />
    </main>
  );
}

export function playPath(id: string, pov: string): string {
  return `#/play/${id}${pov ? `?pov=${encodeURIComponent(pov)}` : ""}`;
}

function waitingText(game: Game, source: Source): string {
  const { session, story } = game.opened;
  const nameOfSeat = (id: string) => {
    const entity = session.seat_config?.seats.find((one) => one.seat_id === id)?.entity_id ?? id;
    return nameOfId(story, entity);
  };
  if (game.waiting.length) return t("seats.waiting", { seats: game.waiting.map(nameOfSeat).join(", ") });
  if (session.next_seat_id) return t("seats.next", { seat: nameOfSeat(session.next_seat_id) });
  return t(source.isOwner ? "seats.links" : "watching");
}

function GameBar({
  session,
  story,
  isOwner,
  isConnected,
  isTelling,
  isLoading,
  onUndo,
  onAgain,
  onLinks,
}: {
  session: Session;
  story: Story;
  isOwner: boolean;
  isConnected: boolean;
  isTelling: boolean;
  isLoading: boolean;
  onUndo?: () => void;
  onAgain: () => void;
  onLinks: () => void;
}) {
  const people = story.entities.filter((one) => one.playable);
  const turn = session.turn ?? 0;
  const progress = story.horizon ? t("turn.of", { n: turn, all: story.horizon }) : t("turn", { n: turn });
  const work = isLoading ? t("play.loading") : isTelling ? t("telling") : progress;
  const status = isConnected ? work : t("connection.lost");
  return (
    <div class="game-bar">
      <h1 class="game-title" dir="auto">
        {clean(story.name)}
      </h1>
      <p class={isConnected ? "game-status" : "game-status lost"} role="status">
        {status}
      </p>
      {isOwner ? (
        <div class="game-tools">
          {people.length > 1 && !session.seat_config && (
            <label class="pov">
              <span class="hidden">{t("pov")}</span>
              <select
                class="field small"
                value={session.pov_entity_id ?? ""}
                onChange={(event) => go(`#/play/${session.session_id}?pov=${encodeURIComponent(event.currentTarget.value)}`)}
              >
                <option value="">{t("pov.public")}</option>
                {people.map((one) => (
                  <option key={one.id} value={one.id}>
                    {clean(one.name ?? one.id)}
                  </option>
                ))}
              </select>
            </label>
          )}
          <button class="button plain small" onClick={onUndo} aria-disabled={!onUndo}>
            <Icon name="undo" flip />
            <span class="tool-text">{t("undo")}</span>
          </button>
          <button class="button plain small" onClick={onLinks}>
            <Icon name="link" />
            <span class="tool-text">{t("links")}</span>
          </button>
          <button class="button plain small" onClick={onAgain}>
            <Icon name="again" flip />
            <span class="tool-text">{t("again")}</span>
          </button>
          <a class="button plain small" href={`#/inspect/${session.scenario_id}`}>
            <Icon name="list" />
            <span class="tool-text">{t("inspect.open")}</span>
          </a>
        </div>
      ) : (
        <p class="badge">{t(session.seat_config ? "seat" : "spectator")}</p>
      )}
    </div>
  );
}

function Strip({ quantities, onOpen }: { quantities: Quantity[]; onOpen: () => void }) {
  return (
    <button class="strip" onClick={onOpen}>
      <span class="hidden">{t("standing")}: </span>
      <span class="strip-items">
      {quantities.slice(0, 6).map((one) => {
        const moved = one.value - (one.history[one.history.length - 2] ?? one.value);
        return (
          <span key={one.path} class="strip-item">
            <bdi class="strip-name">{one.name}</bdi>{" "}
            <strong>{one.word || number(one.value)}</strong>
            {moved !== 0 && <span aria-hidden="true"> {moved > 0 ? "▲" : "▼"}</span>}
          </span>
        );
      })}
      </span>
      <span class="strip-more">{t("strip.more")}</span>
    </button>
  );
}

function StoryPane({
  game,
  story,
  notes,
  isHistoryComplete,
  onFork,
  onUndo,
  onAgain,
  problem,
  onDismiss,
}: {
  game: Game;
  story: Story;
  notes: Note[];
  isHistoryComplete: boolean;
  onFork?: (turn: number) => void;
  onUndo?: () => void;
  onAgain?: () => void;
  problem?: Problem;
  onDismiss: () => void;
}) {
  const { opened, turns, refused } = game;
  const { session } = opened;
  const pane = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const isOver = session.status.kind !== "ongoing" && (turns[turns.length - 1]?.committed ?? false);
  const onScroll = () => {
    const box = pane.current!;
    isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 120;
  };
  useEffect(() => {
    if (game.isBusy) isAtEnd.current = true;
  }, [game.isBusy]);
  useLayoutEffect(() => {
    const box = pane.current!;
    if (!isAtEnd.current || !turns.length) return;
    // An ending that is higher than the window is read from its start.
    const ending = box.querySelector<HTMLElement>(".ending");
    const isHigh = ending && ending.offsetHeight > box.clientHeight;
    box.scrollTop += isHigh ? ending.getBoundingClientRect().top - box.getBoundingClientRect().top : box.scrollHeight;
  });
  const [drawn, setDrawn] = useState(FIRST_DRAWN);
  const shown = turns.slice(-drawn);
  useEffect(() => {
    if (!turns.length || drawn === Infinity) return;
    const timer = setTimeout(() => setDrawn(drawn < turns.length ? drawn + DRAWN_MORE : Infinity));
    return () => clearTimeout(timer);
  }, [drawn, turns.length]);
  const own = story.entities.find((one) => one.id === session.pov_entity_id);
  return (
    <div class="story-pane" ref={pane} onScroll={onScroll} tabIndex={0} role="region" aria-label={t("story")}>
      <div class="story">
        <header class="opening">
          {story.premise && !isOpenedWith(story) && (
            <p class="premise" dir="auto">
              {clean(story.premise)}
            </p>
          )}
          {story.opening && (
            <div class="prose lead">
              {clean(story.opening)
                .split(/\n\s*\n/)
                .map((text, index) => (
                  <p key={index} dir="auto">
                    {text}
                  </p>
                ))}
            </div>
          )}
          {own && (own.description || own.manner) && (
            <p class="stakes" dir="auto">
              <strong>{clean(own.name ?? own.id)}</strong> {clean(own.description ?? own.manner ?? "")}
            </p>
          )}
          {!turns.length && isHistoryComplete && <p class="note begin">{t("begin.hint")}</p>}
        </header>
        {!isHistoryComplete && <Skeleton lines={6} label={t("play.loading")} />}
        {shown.map((turn) => (
          <div key={turn.turn} class="turn-block">
            <Turn turn={turn} story={story} onFork={onFork} />
            {notes
              .filter((note) => note.turn === turn.turn)
              .map((note, index) => (
                <Answer key={index} note={note} />
              ))}
          </div>
        ))}
        {notes
          .filter((note) => note.turn === 0 || note.turn > (turns[turns.length - 1]?.turn ?? 0))
          .map((note, index) => (
            <Answer key={index} note={note} />
          ))}
        {isOver && <Ending session={session} story={story} turns={turns} onUndo={onUndo} onAgain={onAgain} />}
        {refused && <Refused problem={refused} onDismiss={game.dismiss} />}
        {problem && (
          <div class="refused">
            <ProblemBox problem={problem} />
            <button class="button plain small" onClick={onDismiss}>
              {t("dismiss")}
            </button>
          </div>
        )}
      </div>
    </div>
  );
}

/** Returns whether the opening repeats the beginning of the premise, so that a reader need not read it twice. */
function isOpenedWith({ premise = "", opening = "" }: Story): boolean {
  return opening.includes(/^.*?[.!?。？！]+/su.exec(premise)?.[0] ?? premise);
}

/** A turn that was not played: a question of the narrator, or a reason. */
function Refused({ problem, onDismiss }: { problem: Problem; onDismiss: () => void }) {
  const isQuestion = problem.code === "NOT_UNDERSTOOD";
  return (
    <div class="note refused" role="alert">
      <p dir="auto">{isQuestion ? clean(problem.message) : t("refused", { reason: clean(problem.message || problem.code) })}</p>
      <p class="quiet small">
        {t("refused.free")}{" "}
        <button class="button plain small" onClick={onDismiss}>
          {t("dismiss")}
        </button>
      </p>
    </div>
  );
}

function Answer({ note }: { note: Note }) {
  return (
    <div class="note answer" role="status">
      <p class="answer-question" dir="auto">
        {clean(note.question)}
      </p>
      <p dir="auto">{clean(note.answer)}</p>
      {note.turns.length > 0 && (
        <p class="quiet small">
          {t("answer.turns")}{" "}
          {note.turns.map((turn) =>
            turn ? (
              <a key={turn} href={`#turn-${turn}`} onClick={(event) => jump(event, turn)}>
                {t("turn", { n: turn })}{" "}
              </a>
            ) : (
              <span key={turn}>{t("answer.start")} </span>
            ),
          )}
        </p>
      )}
    </div>
  );
}

/** A link for spectators of this point of view or of the public part; and one for each seat. */
function Links({ session, story, pov, onClose }: { session: Session; story: Story; pov: string; onClose: () => void }) {
  const [made, setMade] = useState<{ name: string; url: string }[]>([]);
  const [copied, setCopied] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const seats = session.seat_config?.seats ?? [];
  // Without a clipboard, which is missing outside of secure contexts, the link is selected for the keyboard.
  const copy = (url: string, button: HTMLElement) => {
    if (navigator.clipboard) void navigator.clipboard.writeText(url).then(() => setCopied(url));
    else button.parentElement?.querySelector("input")?.focus();
  };
  const nameOf = (entity: string) => clean(story.entities.find((one) => one.id === entity)?.name ?? entity);
  const make = (name: string, of: string, seat = "") =>
    makeLink(session.session_id, of, seat).then(
      (link) => setMade((before) => [...before, { name, url: location.origin + link.path }]),
      (error: unknown) => setProblem(toProblem(error)),
    );
  return (
    <Sheet title={t("links")} onClose={onClose}>
      <p>
        {t("links.about")} {seats.length > 0 && t("links.about.seats")}
      </p>
      <div class="buttons">
        {pov && (
          <button class="button" onClick={() => make(nameOf(pov), pov)}>
            {t("links.pov", { name: nameOf(pov) })}
          </button>
        )}
        <button class="button" onClick={() => make(t("pov.public"), "")}>
          {t("links.public")}
        </button>
        {seats.map((seat) => (
          <button key={seat.seat_id} class="button" onClick={() => make(nameOf(seat.entity_id), "", seat.seat_id)}>
            {t("links.seat", { name: nameOf(seat.entity_id) })}
          </button>
        ))}
      </div>
      <ul class="links">
        {made.map((link) => (
          <li key={link.url}>
            <label>
              {link.name}
              <input class="field" readOnly value={link.url} onFocus={(event) => event.currentTarget.select()} />
            </label>
            <button class="button small" onClick={(event) => copy(link.url, event.currentTarget)}>
              {t(copied === link.url ? "copied" : "copy")}
            </button>
          </li>
        ))}
      </ul>
      {problem && <ProblemBox problem={problem} />}
    </Sheet>
  );
}

/** Reads a new turn to users of screen readers when it is complete, not in pieces. */
function Announcer({
  turns,
  story,
  isHistoryComplete,
}: {
  turns: readonly TurnView[];
  story: Story;
  isHistoryComplete: boolean;
}) {
  const [text, setText] = useState("");
  const told = useRef<number | undefined>(undefined);
  const last = [...turns].reverse().find((one) => one.committed);
  useEffect(() => {
    if (!isHistoryComplete) return;
    if (told.current !== undefined && last && last.turn > told.current) setText(announce(last, story));
    told.current = last?.turn ?? 0;
  }, [last, isHistoryComplete]);
  return (
    <div class="hidden" aria-live="polite">
      {text}
    </div>
  );
}

function announce(turn: TurnView, story: Story): string {
  const changes = netChanges(turn.changes)
    .filter((one) => typeof one.after === "number")
    .map((one) => t("announce.change", { name: nameOf(story, one.path), value: one.after as number }));
  const event = turn.event ? `${nameOfEvent(story, turn.event)}. ` : "";
  return `${t("turn", { n: turn.turn })}. ${event}${clean(turn.prose)} ${changes.join(" ")}`;
}
