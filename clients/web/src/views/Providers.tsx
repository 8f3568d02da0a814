// Circuit breakers and rate limits of the providers.
import { useEffect } from "preact/hooks";
import { rpc } from "../api";
import { number, price, t } from "../i18n";
import { clean } from "../text";
import { Empty, ProblemBox, Skeleton, useLoaded } from "../ui";

interface Limit {
  kind: "requests" | "input_tokens" | "output_tokens" | "cost" | "concurrency";
  limit?: number;
  used?: number;
}

interface Status {
  provider: string;
  model: string;
  circuit: "closed" | "open" | "half_open";
  retry_delay?: number | string;
  failures?: number;
  waiting_calls?: number;
  limits?: Limit[];
}

const RELOAD_MS = 2000;
const TONES = { closed: "good-text", open: "bad-text", half_open: "warn-text" } as const;

export function Providers() {
  const [found, reload] = useLoaded(
    (signal) => rpc<{ providers?: Status[] }>("GatewayService/GetProviderStatus", {}, signal),
    [],
  );
  useEffect(() => {
    const timer = setInterval(() => document.hidden || reload(), RELOAD_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <section class="stack-small">
      <h2>{t("usage.providers")}</h2>
      <p class="quiet">{t("usage.providers.about")}</p>
      {found.state === "failed" && <ProblemBox problem={found.problem} retry={reload} />}
      {found.state === "loading" && <Skeleton lines={3} />}
      {found.state === "ready" && !found.value.providers?.length && (
        <Empty title={t("usage.providers.none")}>{t("usage.providers.none.hint")}</Empty>
      )}
      {found.state === "ready" && (
        <ul class="providers">
          {(found.value.providers ?? []).map((one) => (
            <li key={`${one.provider}/${one.model}`} class={`provider ${one.circuit}`}>
              <p class="provider-name">{nameOfModel(one.provider, one.model)}</p>
              <p>
                <strong class={TONES[one.circuit]}>{t(`circuit.${one.circuit}`)}</strong>{" "}
                <span class="quiet small">
                  {one.retry_delay !== undefined && t("circuit.retry", { n: Math.ceil(parseFloat(String(one.retry_delay))) })}
                  {one.failures ? ` ${t("circuit.failures", { n: one.failures })}` : ""}
                  {one.waiting_calls ? ` ${t("circuit.waiting", { n: one.waiting_calls })}` : ""}
                </span>
              </p>
              <dl class="limits">
                {(one.limits ?? []).filter(isShown).map((limit) => (
                  <LimitRow key={limit.kind} limit={limit} />
                ))}
              </dl>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Returns provider and model; the model alone if both have the same name. */
export function nameOfModel(provider = "", model = ""): string {
  return clean(provider === model ? model : `${provider}/${model}`);
}

/** Tokens and cost are counted before a call, as the most that it may use; without a limit, that says nothing. */
function isShown({ kind, limit }: Limit): boolean {
  return limit !== undefined || kind === "requests" || kind === "concurrency";
}

function LimitRow({ limit }: { limit: Limit }) {
  const show = (amount: number) => (limit.kind === "cost" ? price(amount) : number(amount));
  const used = limit.used ?? 0;
  return (
    <div>
      <dt>{t(`limit.${limit.kind}`)}</dt>
      <dd>
        {limit.limit === undefined ? (
          <>
            {show(used)} <span class="quiet">{t("limit.none")}</span>
          </>
        ) : (
          <>
            <meter min={0} max={limit.limit} high={limit.limit * 0.8} value={used} aria-hidden="true" />
            {t("of", { n: show(used), all: show(limit.limit) })}
          </>
        )}
      </dd>
    </div>
  );
}
