// Where the game stands: quantities, what is known, odds, and branches.
import { useEffect, useState } from "preact/hooks";
import { rpc, rpcStream } from "../api";
import { number, percent, read, t, write } from "../i18n";
import { clean } from "../text";
import type { Forecast, Session, SessionSummary, Story } from "../types";
import { Shares, Skeleton, Spark } from "../ui";
import { factsOf, quantitiesOf, type Quantity, type Turns } from "./game";

const FORECAST_RUNS = 600;
const MAX_BRANCHES = 24;
const MAX_SHOWN = 9;

export function Quantities({ quantities }: { quantities: Quantity[] }) {
  const [all, setAll] = useState(false);
  // What a reader is meant to follow comes first; counters that never moved only on request.
  const few = Math.min(quantities.filter((one) => one.isFollowed).length || quantities.length, MAX_SHOWN);
  const shown = all ? quantities : quantities.slice(0, few);
  if (!quantities.length) return <p class="quiet">{t("standing.none")}</p>;
  return (
    <>
      <ul class="quantities">
        {shown.map((one) => (
          <li key={one.path} class="quantity">
            <QuantityLine quantity={one} />
          </li>
        ))}
      </ul>
      {quantities.length > few && (
        <button class="button plain small" onClick={() => setAll(!all)}>
          {all ? t("fewer") : t("more", { n: quantities.length - few })}
        </button>
      )}
    </>
  );
}

function QuantityLine({ quantity }: { quantity: Quantity }) {
  const { history, value } = quantity;
  const moved = value - (history[history.length - 2] ?? value);
  const figure = `${number(value)}${quantity.unit ? ` ${quantity.unit}` : ""}`;
  const text = t("history", { from: history[0] ?? value, to: value, n: Math.max(history.length - 1, 0) });
  return (
    <>
      <span class="quantity-name">
        {quantity.group && <bdi class="quantity-group">{quantity.group} </bdi>}
        <bdi>{quantity.name}</bdi>
      </span>
      <span class="quantity-value">
        {quantity.word && <span class="quantity-word">{quantity.word}</span>}
        <bdi class={quantity.word ? "quantity-figure minor" : "quantity-figure"}>{figure}</bdi>
      </span>
      <Scale quantity={quantity} />
      {history.some((one) => one !== value) && (
        <span class="quantity-trend">
          <Spark values={history} label={text} />
          <span class="moved">{moved === 0 ? "" : `${moved > 0 ? "▲" : "▼"} ${number(Math.abs(moved))}`}</span>
        </span>
      )}
    </>
  );
}

/** The position of a value: among its bands, else between its bounds. */
function Scale({ quantity }: { quantity: Quantity }) {
  const { bands, band, min, max, value } = quantity;
  if (bands > 1) {
    return (
      <span class="bands" aria-hidden="true">
        {Array.from({ length: bands }, (_, index) => (
          <span key={index} class={index === band ? "band here" : "band"} />
        ))}
      </span>
    );
  }
  if (min === undefined || max === undefined || max <= min) return null;
  return (
    <span class="bounds" aria-hidden="true">
      <span style={{ inlineSize: `${(100 * (value - min)) / (max - min)}%` }} />
    </span>
  );
}

function Facts({ session, story, title }: { session: Session; story: Story; title: string }) {
  const facts = factsOf(session, story);
  if (!facts.length) return null;
  return (
    <section class="panel" aria-labelledby="facts-title">
      <h2 id="facts-title" class="panel-title">
        {title}
      </h2>
      <dl class="facts">
        {facts.map((fact) => (
          <div key={fact.path} class={`fact ${fact.kind}`}>
            <dt>
              <bdi>{fact.name}</bdi>
            </dt>
            <dd dir="auto">{fact.text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const ODDS_SHOWN = "peripety.odds";

/** Chances from here on, if a player chooses at random. */
export function Odds({ session, story, pov }: { session: Session; story: Story; pov: string }) {
  const [forecast, setForecast] = useState<Forecast>();
  const [isShown, setShown] = useState(read(ODDS_SHOWN) !== "no");
  const turn = session.turn ?? 0;
  const isOver = session.status.kind !== "ongoing";
  useEffect(() => {
    if (!isShown || isOver) return;
    const abort = new AbortController();
    const run = async () => {
      const request = { session_id: session.session_id, runs: FORECAST_RUNS, pov_entity_id: pov };
      for await (const one of rpcStream<Forecast>("SessionService/ForecastOutcomes", request, abort.signal)) setForecast(one);
    };
    run().catch(() => undefined);
    return () => abort.abort();
  }, [session.session_id, turn, isShown, isOver]);
  if (isOver) return null;
  const toggle = () => {
    write(ODDS_SHOWN, isShown ? "no" : "yes");
    setShown(!isShown);
  };
  const sum = (kind: string) =>
    (forecast?.outcomes ?? []).filter((one) => one.kind === kind).reduce((all, one) => all + (one.rate.value ?? 0), 0);
  const part = (kind: "lost" | "survived" | "won", share: number) => ({ kind, name: t(`odds.${kind}`), share });
  const causes = (forecast?.outcomes ?? []).filter((one) => (one.rate.value ?? 0) > 0);
  return (
    <section class="panel" aria-labelledby="odds-title">
      <header class="panel-header">
        <h2 id="odds-title" class="panel-title">
          {t("odds")}
        </h2>
        <button class="button plain small" aria-expanded={isShown} onClick={toggle}>
          {t(isShown ? "hide" : "show")}
        </button>
      </header>
      {isShown &&
        (forecast ? (
          <div class="odds">
            <Shares
              label={t("odds")}
              parts={[part("lost", sum("lost")), part("survived", forecast.survived?.value ?? 0), part("won", sum("won"))]}
            />
            <p class="quiet small">{t("odds.about", { n: forecast.runs })}</p>
            {causes.length > 0 && (
              <details class="odds-causes">
                <summary>{t("odds.causes")}</summary>
                <ul>
                  {causes.map((one) => (
                    <li key={one.condition} class={one.kind} dir="auto">
                      {percent(one.rate.value ?? 0)} {clean(story.endings[one.condition] || one.condition)}
                    </li>
                  ))}
                </ul>
              </details>
            )}
          </div>
        ) : (
          <Skeleton lines={3} />
        ))}
    </section>
  );
}

interface Branch {
  id: string;
  turn: number;
  from: number;
  status: string;
  children: Branch[];
}

/** The family of a session: the first one, and the branches that were taken from it. */
export function Branches({ session, story, turns }: { session: Session; story: Story; turns: Turns }) {
  const [tree, setTree] = useState<Branch>();
  useEffect(() => {
    const abort = new AbortController();
    loadBranches(session, abort.signal).then(
      (found) => abort.signal.aborted || setTree(found),
      () => undefined,
    );
    return () => abort.abort();
  }, [session.session_id, session.turn]);
  if (!tree || (tree.id === session.session_id && !tree.children.length)) return null;
  return (
    <section class="panel" aria-labelledby="branches-title">
      <h2 id="branches-title" class="panel-title">
        {t("branches")}
      </h2>
      <ul class="branches">
        <BranchLine branch={tree} current={session.session_id} isRoot story={story} turns={turns} />
      </ul>
    </section>
  );
}

function BranchLine({
  branch,
  current,
  isRoot,
  story,
  turns,
}: {
  branch: Branch;
  current: string;
  isRoot?: boolean;
  story: Story;
  turns: Turns;
}) {
  const text = t("branch.state", { turn: branch.turn, status: t(`status.${branch.status}` as "status.ongoing") });
  return (
    <li>
      <a href={`#/play/${branch.id}`} aria-current={branch.id === current ? "page" : undefined}>
        <span class="branch-name">{isRoot ? t("branch.first") : t("branch.from", { n: branch.from })}</span>
        <span class="quiet small">{text}</span>
      </a>
      {branch.children.length > 0 && (
        <ul>
          {branch.children.map((child) => (
            <BranchLine key={child.id} branch={child} current={current} story={story} turns={turns} />
          ))}
        </ul>
      )}
    </li>
  );
}

async function loadBranches(session: Session, signal: AbortSignal): Promise<Branch> {
  const list = await rpc<{ sessions?: SessionSummary[] }>(
    "SessionService/ListSessions",
    { scenario_id: session.scenario_id, page_size: 200 },
    signal,
  );
  const byId = new Map((list.sessions ?? []).map((one) => [one.session_id, one]));
  let root = session.session_id;
  for (let parent = byId.get(root)?.parent_session_id; parent && byId.has(parent); parent = byId.get(root)?.parent_session_id) {
    root = parent;
  }
  let left = MAX_BRANCHES;
  const grow = async (id: string, isRoot: boolean): Promise<Branch> => {
    const summary = byId.get(id);
    const from = isRoot ? 0 : (await rpc<{ session: Session }>("SessionService/GetSession", { session_id: id }, signal)).session.parent_turn;
    const below = [...byId.values()].filter((one) => one.parent_session_id === id).reverse();
    const children: Branch[] = [];
    for (const child of below) {
      if (left <= 0) break;
      left -= 1;
      children.push(await grow(child.session_id, false));
    }
    const turn = summary?.turn ?? session.turn ?? 0;
    return { id, turn, from: from ?? 0, status: summary?.status.kind ?? session.status.kind, children };
  };
  return grow(root, true);
}

export function Standing({
  session,
  story,
  turns,
  pov,
  isOwner,
  isPlayer,
}: {
  session: Session;
  story: Story;
  turns: Turns;
  pov: string;
  isOwner: boolean;
  isPlayer: boolean;
}) {
  return (
    <>
      <section class="panel" aria-labelledby="standing-title">
        <h2 id="standing-title" class="panel-title">
          {t(isPlayer ? "standing" : "standing.watched")}
        </h2>
        <Quantities quantities={quantitiesOf(session, story, turns)} />
      </section>
      <Facts session={session} story={story} title={t(isPlayer ? "facts" : "facts.watched")} />
      {isOwner && <Odds session={session} story={story} pov={pov} />}
      {isOwner && <Branches session={session} story={story} turns={turns} />}
    </>
  );
}
