// The first view: describe a situation, or continue a game.
import type { TargetedKeyboardEvent, TargetedSubmitEvent } from "preact";
import { useId, useState } from "preact/hooks";
import { rpc } from "../api";
import { date, percent, t } from "../i18n";
import { go } from "../router";
import { clean } from "../text";
import type { ScenarioSummary, Session, SessionSummary } from "../types";
import { Empty, Icon, ProblemBox, Sheet, Skeleton, useLoaded, useTitle } from "../ui";
import { post } from "../api";
import { startWriting } from "./writing";

const SHOWN = 12;

interface Lists {
  sessions: SessionSummary[];
  scenarios: ScenarioSummary[];
}

async function loadLists(signal: AbortSignal): Promise<Lists> {
  const [sessions, scenarios] = await Promise.all([
    rpc<{ sessions?: SessionSummary[] }>("SessionService/ListSessions", { page_size: SHOWN }, signal),
    rpc<{ scenarios?: ScenarioSummary[] }>("ScenarioService/ListScenarios", { page_size: 100 }, signal),
  ]);
  return { sessions: sessions.sessions ?? [], scenarios: scenarios.scenarios ?? [] };
}

export default function HomeView() {
  useTitle("");
  const [lists, reload] = useLoaded(loadLists, []);
  return (
    <main id="main" class="page home">
      <Describe />
      {lists.state === "failed" ? (
        <ProblemBox problem={lists.problem} retry={reload} />
      ) : (
        <div class="home-lists">
          <section aria-labelledby="continue-title">
            <h2 id="continue-title">{t("home.continue")}</h2>
            {lists.state === "loading" ? <Skeleton lines={5} /> : <Sessions lists={lists.value} reload={reload} />}
          </section>
          <section aria-labelledby="scenarios-title">
            <h2 id="scenarios-title">{t("home.scenarios")}</h2>
            {lists.state === "loading" ? <Skeleton lines={5} /> : <Scenarios scenarios={lists.value.scenarios} />}
          </section>
        </div>
      )}
    </main>
  );
}

function Describe() {
  const id = useId();
  const [text, setText] = useState("");
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    startWriting(text.trim());
    go("#/write");
  };
  const onKey = (event: TargetedKeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form!.requestSubmit();
  };
  return (
    <form class="describe" onSubmit={submit}>
      <h1>{t("home.title")}</h1>
      <p class="describe-about">{t("home.about")}</p>
      <label class="hidden" for={id}>
        {t("home.label")}
      </label>
      <textarea
        id={id}
        class="describe-text"
        rows={5}
        dir={text ? "auto" : undefined}
        maxLength={20000}
        placeholder={t("home.placeholder")}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKey}
      />
      <div class="buttons">
        <button class="button primary large">{t("home.write")}</button>
        <span class="quiet small">{t("home.free")}</span>
      </div>
    </form>
  );
}

function Sessions({ lists, reload }: { lists: Lists; reload: () => void }) {
  const [doomed, setDoomed] = useState<SessionSummary>();
  if (!lists.sessions.length) return <Empty title={t("home.nosessions")}>{t("home.nosessions.hint")}</Empty>;
  const nameOf = (one: SessionSummary) =>
    clean(lists.scenarios.find((scenario) => scenario.scenario_id === one.scenario_id)?.name ?? t("home.unnamed"));
  return (
    <>
      <ul class="cards">
        {lists.sessions.map((one) => (
          <li key={one.session_id} class="card">
            <a class="card-link" href={`#/play/${one.session_id}`}>
              <span class="card-title" dir="auto">
                {nameOf(one)}
              </span>
              <span class="card-text">
                <span class={`status ${one.status.kind}`}>{t(`status.${one.status.kind}`)}</span>
                {t("turn", { n: one.turn ?? 0 })}
                {one.parent_session_id && <span>{t("branch")}</span>}
                <span>{date(one.update_time)}</span>
              </span>
            </a>
            <button class="button plain small" aria-label={t("delete.of", { name: nameOf(one) })} onClick={() => setDoomed(one)}>
              <Icon name="bin" />
            </button>
          </li>
        ))}
      </ul>
      {doomed && (
        <Sheet title={t("delete.title")} onClose={() => setDoomed(undefined)}>
          <p dir="auto">{nameOf(doomed)}</p>
          <p>{t("delete.about")}</p>
          <div class="buttons">
            <button
              class="button danger"
              onClick={() =>
                rpc("SessionService/DeleteSession", { session_id: doomed.session_id }).finally(() => {
                  setDoomed(undefined);
                  reload();
                })
              }
            >
              {t("delete")}
            </button>
            <button class="button" onClick={() => setDoomed(undefined)}>
              {t("cancel")}
            </button>
          </div>
        </Sheet>
      )}
    </>
  );
}

function Scenarios({ scenarios }: { scenarios: ScenarioSummary[] }) {
  if (!scenarios.length) return <Empty title={t("home.noscenarios")}>{t("home.noscenarios.hint")}</Empty>;
  const start = (one: ScenarioSummary) =>
    post<Session>("/sessions", { scenario_id: one.scenario_id, seed: Math.floor(Math.random() * 2 ** 31) }).then(
      (made) => go(`#/play/${made.session_id}`),
      () => undefined,
    );
  return (
    <ul class="cards">
      {scenarios.slice(0, SHOWN).map((one) => (
        <li key={one.scenario_id} class="card">
          <div class="card-link">
            <span class="card-title" dir="auto">
              {clean(one.name)}
            </span>
            <span class="card-text">
              <span>{t("home.failrate", { share: percent(one.fail_rate ?? 0) })}</span>
              <span>{date(one.create_time)}</span>
            </span>
          </div>
          <div class="card-buttons">
            <button class="button small" onClick={() => start(one)}>
              {t("start")}
              <span class="hidden">: {clean(one.name)}</span>
            </button>
            <a class="button plain small" href={`#/inspect/${one.scenario_id}`}>
              {t("inspect.open")}
              <span class="hidden">: {clean(one.name)}</span>
            </a>
          </div>
        </li>
      ))}
    </ul>
  );
}
