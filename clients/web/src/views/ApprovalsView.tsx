// Calls that wait for a person. They come from an enforcement point, whose token stays in the memory of the page.
import type { TargetedSubmitEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { pause, rpc, Problem } from "../api";
import { duration, t } from "../i18n";
import { clean, exact } from "../text";
import { Empty, ProblemBox, Sheet, Skeleton, toProblem, useTitle } from "../ui";
import type { Request } from "./policyCalls";

interface Point {
  address: string;
  token: string;
}

interface Approval {
  approval_id: string;
  request: Request;
  call_hash: string;
  rule_id?: string;
  reasons?: string[];
  expire_time: string;
  redacted_paths?: string[];
}

type Answer = "approve" | "deny";

const METHODS = { approve: "ApproveCall", deny: "DenyCall" } as const;
const PERIOD_MS = 2000;
const PAGE_SIZE = 100;

/** The chosen enforcement point, until the page is closed. It is never stored, and never part of an address. */
let chosen: Point | undefined;

function callPoint<T>(point: Point, method: string, request: unknown, signal?: AbortSignal): Promise<T> {
  return rpc<T>(`ApprovalService/${method}`, request, signal, {
    "x-peripety-enforcement-point": point.address,
    "x-peripety-enforcement-token": point.token,
  });
}

export function ApprovalsView() {
  useTitle(t("approvals"));
  const [point, setPoint] = useState(chosen);
  const choose = (next: Point | undefined) => {
    chosen = next;
    setPoint(next);
  };
  const isFirst = useRef(true);
  useEffect(() => {
    // The part of the page that had the focus is gone.
    if (!isFirst.current) document.getElementById(point ? "waiting-calls" : "point-address")?.focus();
    isFirst.current = false;
  }, [point]);
  return (
    <main id="main" class="page stack">
      <header class="stack-small">
        <p class="quiet">
          <a href="#/policies">{t("nav.policies")}</a>
        </p>
        <h1>{t("approvals")}</h1>
        <p class="lead-text">{t("approvals.about")}</p>
      </header>
      {point ? <Waiting point={point} onLeave={() => choose(undefined)} /> : <PointForm onChoose={choose} />}
    </main>
  );
}

function PointForm({ onChoose }: { onChoose: (point: Point) => void }) {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    onChoose({ address: String(data.get("address")).trim(), token: String(data.get("token")).trim() });
  };
  return (
    <form class="stack-small form" onSubmit={submit} autocomplete="off">
      <h2>{t("approvals.point")}</h2>
      <p>{t("approvals.point.about")}</p>
      <pre class="command" dir="ltr">{'cat "${XDG_RUNTIME_DIR:-$HOME/.cache}/peripety/proxy.json"'}</pre>
      <label for="point-address">{t("approvals.address")}</label>
      <input
        id="point-address"
        class="field"
        name="address"
        dir="ltr"
        required
        autocomplete="off"
        spellcheck={false}
        placeholder="127.0.0.1:50123"
        pattern="\s*[!-~]+:[0-9]+\s*"
        title={t("approvals.address.form")}
      />
      <label for="point-token">{t("approvals.token")}</label>
      <input
        id="point-token"
        class="field"
        name="token"
        type="password"
        dir="ltr"
        required
        autocomplete="off"
        pattern="\s*[!-~]+\s*"
        title={t("approvals.token.form")}
        aria-describedby="point-token-about"
      />
      <p id="point-token-about" class="quiet small">
        {t("approvals.token.about")}
      </p>
      <div class="buttons">
        <button class="button primary">{t("approvals.connect")}</button>
      </div>
    </form>
  );
}

/** Loads the waiting calls again and again, until it fails or the view is left. */
function useWaiting(point: Point): { calls?: Approval[]; problem?: Problem; reload: () => void; remove: (id: string) => void } {
  const [calls, setCalls] = useState<Approval[]>();
  const [problem, setProblem] = useState<Problem>();
  const [count, setCount] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const follow = async () => {
      while (!abort.signal.aborted) {
        const page = await callPoint<{ approvals?: Approval[] }>(point, "ListApprovals", { page_size: PAGE_SIZE }, abort.signal);
        setCalls(page.approvals ?? []);
        await pause(PERIOD_MS, abort.signal);
      }
    };
    setProblem(undefined);
    follow().catch((error: unknown) => abort.signal.aborted || setProblem(toProblem(error)));
    return () => abort.abort();
  }, [point, count]);
  return {
    calls,
    problem,
    reload: () => setCount((before) => before + 1),
    remove: (id) => setCalls((before) => before?.filter((one) => one.approval_id !== id)),
  };
}

function Waiting({ point, onLeave }: { point: Point; onLeave: () => void }) {
  const { calls, problem, reload, remove } = useWaiting(point);
  const [asked, setAsked] = useState<{ approval: Approval; answer: Answer; requestId: string }>();
  const [answered, setAnswered] = useState<{ told: string }>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  const open = (approval: Approval, answer: Answer) => setAsked({ approval, answer, requestId: crypto.randomUUID() });
  const finish = (approval: Approval, told: string) => {
    setAsked(undefined);
    setAnswered({ told });
    remove(approval.approval_id);
  };
  // The button that had the focus is gone with its call; the rest of the page takes none while the dialog is open.
  useEffect(() => {
    if (answered) heading.current?.focus();
  }, [answered]);
  return (
    <section class="stack-small">
      <div class="buttons">
        <p class="quiet">
          {t("approvals.from")} <code dir="ltr">{point.address}</code>
        </p>
        <button class="button small" onClick={onLeave}>
          {t("approvals.leave")}
        </button>
      </div>
      <h2 ref={heading} id="waiting-calls" tabIndex={-1}>
        {t("approvals.waiting")}
      </h2>
      <p role="status" class="quiet">
        {[answered?.told, calls && t("approvals.count", { n: calls.length })].filter(Boolean).join(" ")}
      </p>
      {problem && <PointProblem problem={problem} retry={reload} />}
      {!problem && !calls && <Skeleton lines={5} />}
      {!problem && calls?.length === 0 && (
        <Empty title={t("approvals.none")}>
          <p>{t("approvals.none.hint")}</p>
        </Empty>
      )}
      {calls && calls.length > 0 && (
        <ul class="approvals">
          {calls.map((one) => (
            <li key={one.approval_id}>
              <article class="approval stack-small" aria-labelledby={`call-${one.approval_id}`}>
                <CallDetails approval={one} id={`call-${one.approval_id}`} />
                <TimeLeft until={Date.parse(one.expire_time)} now={now} />
                <div class="buttons">
                  {(["approve", "deny"] as const).map((answer) => (
                    <button
                      key={answer}
                      class={answer === "approve" ? "button primary" : "button danger"}
                      aria-describedby={`call-${one.approval_id}`}
                      onClick={() => open(one, answer)}
                    >
                      {t(`approvals.${answer}`)}
                    </button>
                  ))}
                </div>
              </article>
            </li>
          ))}
        </ul>
      )}
      {asked && <Confirm point={point} {...asked} onClose={() => setAsked(undefined)} onDone={finish} />}
    </section>
  );
}

/** A failure of the enforcement point, whose token is not the one of this server. */
function PointProblem({ problem, retry }: { problem: Problem; retry?: () => void }) {
  const isOther = problem.code === "TOKEN_REQUIRED" && problem.status !== 401;
  return <ProblemBox problem={isOther ? new Problem("POINT_TOKEN", problem.status, "") : problem} retry={retry} />;
}

/** The exact call: what cannot be seen is written as an escape, so it cannot hide. */
function CallDetails({ approval, id }: { approval: Approval; id: string }) {
  const { request, reasons, rule_id, redacted_paths } = approval;
  const given = Object.entries((request.arguments ?? {}) as Record<string, unknown>);
  const hidden = new Set((redacted_paths ?? []).map(firstSegment));
  return (
    <>
      <h3 id={id} class="approval-title" dir="ltr">
        <code>
          {exact(request.server_name)}/{exact(request.tool_name)}
        </code>
      </h3>
      <ul class="notes">
        {(reasons ?? []).map((one, index) => (
          <li key={index} dir="auto">
            {clean(one)}
          </li>
        ))}
      </ul>
      {given.length === 0 ? (
        <p class="quiet">{t("approvals.noarguments")}</p>
      ) : (
        <dl class="arguments">
          {given.map(([name, value]) => (
            <div key={name}>
              <dt>
                <code dir="ltr">{exact(name)}</code>
              </dt>
              <dd>
                <Value value={value} isHidden={hidden.has(name)} name={name} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      <p class="quiet small">
        {rule_id && (
          <>
            {t("approvals.rule")} <code dir="ltr">{exact(rule_id)}</code>
          </>
        )}
        {rule_id && request.roles?.length ? " · " : ""}
        {request.roles?.length ? (
          <>
            {t("approvals.roles")} <code dir="ltr">{exact(request.roles.join(", "))}</code>
          </>
        ) : null}
      </p>
    </>
  );
}

function firstSegment(pointer: string): string {
  return (pointer.split("/")[1] ?? "").replace(/~1/g, "/").replace(/~0/g, "~");
}

function Value({ value, isHidden, name }: { value: unknown; isHidden: boolean; name: string }) {
  const [isShown, setShown] = useState(!isHidden);
  if (isShown) {
    return (
      <pre class="argument" dir="ltr">
        {exact(JSON.stringify(value, null, 2))}
      </pre>
    );
  }
  return (
    <span class="buttons">
      <span class="badge">{t("approvals.redacted")}</span>
      <button class="button small" aria-label={t("approvals.show", { name: exact(name) })} onClick={() => setShown(true)}>
        {t("show")}
      </button>
    </span>
  );
}

function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function TimeLeft({ until, now }: { until: number; now: number }) {
  const seconds = Math.max(0, Math.round((until - now) / 1000));
  return (
    <p class={seconds > 30 ? "quiet small" : "warn-text small"}>
      {seconds ? t("approvals.left", { time: duration(seconds) }) : t("approvals.expired")}
    </p>
  );
}

/** Asks once more. The answer has one id, so a second click or a repetition answers the same call once. */
function Confirm({
  point,
  approval,
  answer,
  requestId,
  onClose,
  onDone,
}: {
  point: Point;
  approval: Approval;
  answer: Answer;
  requestId: string;
  onClose: () => void;
  onDone: (approval: Approval, told: string) => void;
}) {
  const [problem, setProblem] = useState<Problem>();
  const isSending = useRef(false);
  const send = async () => {
    if (isSending.current) return;
    isSending.current = true;
    setProblem(undefined);
    const { approval_id, call_hash } = approval;
    try {
      await callPoint(point, METHODS[answer], { request_id: requestId, approval_id, call_hash });
      onDone(approval, t(`approvals.${answer}.done`, { call: exact(`${approval.request.server_name}/${approval.request.tool_name}`) }));
    } catch (error) {
      setProblem(toProblem(error));
      isSending.current = false;
    }
  };
  return (
    <Sheet title={t(`approvals.${answer}.title`)} onClose={onClose}>
      <CallDetails approval={approval} id="confirmed-call" />
      <p>{t(`approvals.${answer}.about`)}</p>
      {problem && <PointProblem problem={problem} />}
      <div class="buttons">
        <button class={answer === "approve" ? "button primary" : "button danger"} onClick={send}>
          {t(`approvals.${answer}.confirm`)}
        </button>
        <button class="button" onClick={onClose}>
          {t("cancel")}
        </button>
      </div>
    </Sheet>
  );
}
