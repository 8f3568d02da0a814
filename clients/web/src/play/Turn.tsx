// One turn: the decision, its results, and the telling.
import { number, t, tMaybe } from "../i18n";
import { clean, words } from "../text";
import type { Cause, Roll, Story } from "../types";
import { Icon, memo, signed } from "../ui";
import {
  kindOfPath,
  nameOf,
  nameOfAction,
  nameOfEvent,
  nameOfId,
  netChanges,
  paragraphsOf,
  showValue,
  type ActionResult,
  type NetChange,
  type Passage,
  type TurnView,
} from "./game";

export const Turn = memo(function Turn({
  turn,
  story,
  onFork,
}: {
  turn: TurnView;
  story: Story;
  onFork?: (turn: number) => void;
}) {
  const changes = netChanges(turn.changes);
  const paragraphs = paragraphsOf(turn);
  const id = `turn-${turn.turn}`;
  return (
    <article id={id} class={turn.committed ? "turn" : "turn open"} aria-labelledby={`${id}-title`} aria-busy={!turn.committed}>
      <header class="turn-header">
        <h2 id={`${id}-title`} class="turn-number">
          {t("turn", { n: turn.turn })}
        </h2>
        <p class="turn-choice" dir="auto">
          <Choice turn={turn} story={story} />
        </p>
        {onFork && turn.committed && (
          <button class="button plain small turn-fork" onClick={() => onFork(turn.turn)}>
            <Icon name="fork" />
            <span class="turn-fork-text">{t("fork.here")}</span>
            <span class="hidden">{t("fork.after", { n: turn.turn })}</span>
          </button>
        )}
      </header>
      {(turn.event || changes.length > 0 || turn.rolls.length > 0) && (
        <ul class="results" aria-label={t("results")}>
          {turn.event && (
            <li class="result event" dir="auto">
              <span class="result-kind">{t("event")}</span> {nameOfEvent(story, turn.event)}
            </li>
          )}
          {turn.rolls.map((roll, index) => (
            <Die key={index} roll={roll} story={story} />
          ))}
          {changes.map((change) => (
            <ChangeLine key={change.path} change={change} story={story} event={turn.event} />
          ))}
        </ul>
      )}
      <div class="prose">
        {paragraphs.map((parts, index) => (
          <Paragraph key={index} parts={parts} story={story} />
        ))}
        {!turn.committed && !turn.prose && <p class="telling" aria-hidden="true" />}
      </div>
      {turn.retracted && !turn.committed && <p class="note" dir="auto">{t("retracted")}</p>}
      {turn.degraded && <p class="note" dir="auto">{t("degraded", { reason: tMaybe(`degraded.${turn.degraded}`, words(turn.degraded)) })}</p>}
    </article>
  );
});

function Choice({ turn, story }: { turn: TurnView; story: Story }) {
  const own = turn.actions.filter((one) => one.id);
  return (
    <>
      {turn.input && <q class="said">{clean(turn.input)}</q>}
      {own.map((action, index) => (
        <span key={index} class={action.accepted ? "act" : "act refused"}>
          {action.entity && story.entities.length > 1 ? `${nameOfId(story, action.entity)}: ` : ""}
          {nameOfAction(story, action.id)}
          <Params action={action} story={story} />
          {!action.accepted && <span class="act-reason"> {t("act.refused")}</span>}
        </span>
      ))}
      {!turn.input && own.length === 0 && <span class="act waiting">{t("waited")}</span>}
    </>
  );
}

function Params({ action, story }: { action: ActionResult; story: Story }) {
  const shown = Object.entries(action.params).map(([name, value]) => {
    if (typeof value === "number") return `${words(name)} ${number(value)}`;
    return typeof value === "boolean" ? `${words(name)}: ${t(value ? "yes" : "no")}` : showValue(story, value);
  });
  return shown.length ? <span class="act-params"> ({shown.join(", ")})</span> : null;
}

function Paragraph({ parts, story }: { parts: Passage[]; story: Story }) {
  const told = parts.map((part) => (part.kind === "prose" ? part.text : "")).join("");
  return (
    <p dir="auto">
      {parts.map((part, index) => {
        if (part.kind === "prose") return part.text;
        const name = part.entity === "" ? "" : nameOfId(story, part.entity);
        const tone = story.entities.findIndex((one) => one.id === part.entity) % 6;
        return (
          <span key={index} class={`speech tone-${Math.max(tone, 0)}`}>
            {name && !told.includes(name.split(" ")[0]!) && <span class="speaker">{name}</span>}
            <span class="uttered" title={name}>
              {part.text}
            </span>
          </span>
        );
      })}
    </p>
  );
}

function Die({ roll, story }: { roll: Roll; story: Story }) {
  const text = t(roll.success ? "roll.success" : "roll.failure", { value: roll.value, difficulty: roll.difficulty });
  const what = [nameOfAction(story, roll.kind), roll.target ? nameOfId(story, roll.target) : ""].filter(Boolean).join(", ");
  return (
    <li class={roll.success ? "result roll success" : "result roll failure"} dir="auto">
      <svg class="die" viewBox="0 0 24 24" aria-hidden="true">
        <path d="M12 1.5l9.2 5.3v10.4L12 22.5l-9.2-5.3V6.8z" />
        <text x="12" y="15.6" text-anchor="middle">
          {roll.value}
        </text>
      </svg>
      <span>
        <span class="result-name">{what}</span> {text}
      </span>
    </li>
  );
}

function ChangeLine({ change, story, event }: { change: NetChange; story: Story; event: string }) {
  const { before, after } = change;
  const kind = kindOfPath(change.path);
  if (kind !== "fact" && kind !== "place" && typeof after === "string") {
    return (
      <li class="result told" dir="auto">
        <span class="result-kind learned">{nameOf(story, change.path)}</span> <span dir="auto">{showValue(story, after)}</span>
      </li>
    );
  }
  const isNumber = typeof before === "number" && typeof after === "number";
  const direction = isNumber ? (after > before ? "up" : "down") : undefined;
  const causes = [...new Set(change.causes.map((cause) => causeText(cause, story, event)).filter(Boolean))];
  return (
    <li class={`result change ${direction ?? "set"}`} dir="auto">
      {direction && <Icon name={direction} />}
      <span class="result-name">{nameOf(story, change.path)}</span>{" "}
      {isNumber ? (
        <span class="figures" title={signed(after - before)}>
          {number(before)} → <strong>{number(after)}</strong>
        </span>
      ) : (
        <span class="figures">
          {before !== undefined && before !== "" && (
            <>
              <bdi>{valueText(story, before)}</bdi> →{" "}
            </>
          )}
          <strong>
            <bdi>{after === undefined ? t("gone") : valueText(story, after)}</bdi>
          </strong>
        </span>
      )}
      {causes.length > 0 && <span class="cause"> {causes.join(", ")}</span>}
    </li>
  );
}

function valueText(story: Story, value: unknown): string {
  return typeof value === "number" ? number(value) : showValue(story, value);
}

/** Returns the name of a cause; empty for an action, which the turn is named by. */
export function causeText(cause: Cause, story: Story, event = ""): string {
  switch (cause.kind) {
    case "action":
      return "";
    case "event":
      return cause.id === event ? "" : nameOfEvent(story, cause.id ?? "");
    case "schedule":
      return t("cause.schedule");
    case "decay":
      return t("cause.decay");
    default:
      return t("cause.narrator");
  }
}
