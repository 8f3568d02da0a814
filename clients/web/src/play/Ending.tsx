// The end of a game: how it ended, its epilogue, and what decided it.
import { number, t } from "../i18n";
import { clean } from "../text";
import type { Session, Story } from "../types";
import { Spark, signed } from "../ui";
import { decidingChanges, historyOf, nameOf, nameOfAction, type Turns } from "./game";
import { causeText } from "./Turn";

const SHOWN_PATHS = 3;
const SHOWN_CHANGES = 3;

export function Ending({
  session,
  story,
  turns,
  onUndo,
  onAgain,
}: {
  session: Session;
  story: Story;
  turns: Turns;
  onUndo?: () => void;
  onAgain?: () => void;
}) {
  const { kind, message, condition } = session.status;
  const epilogue = toldAlready(turns, story.ending?.epilogue ?? "") ? "" : (story.ending?.epilogue ?? "");
  const paths = (story.ending?.paths ?? []).filter((path) => decidingChanges(turns, path, 1).length).slice(0, SHOWN_PATHS);
  return (
    <section class={`ending ${kind}`} aria-labelledby="ending-title" tabIndex={-1}>
      <p class="ending-kind">{t(`ending.${kind}` as "ending.won")}</p>
      <h2 id="ending-title" class="ending-title" dir="auto">
        {clean(message || (condition && story.endings[condition]) || t(`ending.${kind}.plain` as "ending.won.plain"))}
      </h2>
      {epilogue && (
        <div class="prose">
          {clean(epilogue)
            .split(/\n\s*\n/)
            .map((text, index) => (
              <p key={index} dir="auto">
                {text}
              </p>
            ))}
        </div>
      )}
      {paths.length > 0 && (
        <div class="deciding">
          <h3>{t("ending.decided")}</h3>
          {paths.map((path) => (
            <DecidingPath key={path} path={path} story={story} turns={turns} />
          ))}
        </div>
      )}
      <div class="buttons">
        {onAgain && (
          <button class="button primary" onClick={onAgain}>
            {t("again")}
          </button>
        )}
        {onUndo && (
          <button class="button" onClick={onUndo}>
            {t("undo.last")}
          </button>
        )}
      </div>
    </section>
  );
}

/** Returns whether the last turn ends with a text, so that a reader need not read it twice. */
function toldAlready(turns: Turns, text: string): boolean {
  const plain = (one: string) => one.replace(/\s+/g, " ").trim();
  return plain(turns[turns.length - 1]?.prose ?? "").includes(plain(text));
}

function DecidingPath({ path, story, turns }: { path: string; story: Story; turns: Turns }) {
  const history = historyOf(turns, path, 0);
  const from = history[0] ?? 0;
  const to = history[history.length - 1] ?? 0;
  return (
    <div class="deciding-path">
      <p class="deciding-name" dir="auto">
        {nameOf(story, path)}{" "}
        <span class="figures">
          {number(from)} → <strong>{number(to)}</strong>
        </span>
      </p>
      <Spark values={history} label={t("history", { from, to, n: history.length - 1 })} large />
      <ol class="deciding-changes">
        {decidingChanges(turns, path, SHOWN_CHANGES).map((one, index) => (
          <li key={index}>
            <a href={`#turn-${one.turn}`} onClick={(event) => jump(event, one.turn)}>
              {t("turn", { n: one.turn })}
            </a>{" "}
            <strong>{signed(one.amount)}</strong>{" "}
            <span dir="auto">
              {causeText(one.change.cause, story) || nameOfAction(story, one.change.cause.id ?? "")}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

export function jump(event: Event, turn: number): void {
  event.preventDefault();
  document.getElementById(`turn-${turn}`)?.scrollIntoView({ block: "start" });
}
