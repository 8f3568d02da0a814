// What models were used, and what it cost.
import { rpc } from "../api";
import { day, number, percent, price, t } from "../i18n";
import { clean, words } from "../text";
import { Empty, Figure, ProblemBox, Skeleton, useLoaded, useTitle } from "../ui";
import { nameOfModel, Providers } from "./Providers";
import { ScriptedCalls } from "./ScriptedCalls";

interface Money {
  currency_code?: string;
  pico_units?: number;
}

interface Row {
  provider?: string;
  model?: string;
  day?: string;
  response_cache_hits?: number;
  usage?: {
    calls?: number;
    tokens?: { input_tokens?: number; output_tokens?: number; cache_read_tokens?: number; reasoning_tokens?: number };
    cost?: Money;
    cache_savings?: Money;
  };
}

interface Model {
  name: string;
  provider: string;
  capabilities?: string[];
  context_tokens?: number;
  is_default?: boolean;
}

export default function UsageView() {
  useTitle(t("nav.usage"));
  const [found, reload] = useLoaded(async (signal) => {
    const [rows, sum, models] = await Promise.all([
      rpc<{ rows?: Row[] }>("GatewayService/GetUsage", { group_by: ["day", "provider", "model"], page_size: 200 }, signal),
      rpc<{ rows?: Row[] }>("GatewayService/GetUsage", {}, signal),
      rpc<{ models?: Model[] }>("GatewayService/ListModels", { page_size: 200 }, signal),
    ]);
    return { rows: [...(rows.rows ?? [])].reverse(), sum: sum.rows?.[0], models: models.models ?? [] };
  }, []);
  return (
    <main id="main" class="page stack">
      <h1>{t("usage.title")}</h1>
      {found.state === "failed" && <ProblemBox problem={found.problem} retry={reload} />}
      {found.state === "loading" && <Skeleton lines={8} />}
      {found.state === "ready" && (
        <>
          <Sum row={found.value.sum} />
          <Providers />
          <ScriptedCalls />
          <section class="stack-small">
            <h2>{t("usage.days")}</h2>
            {found.value.rows.length ? <Rows rows={found.value.rows} /> : <Empty title={t("usage.none")}>{t("usage.none.hint")}</Empty>}
          </section>
          <section class="stack-small">
            <h2>{t("usage.models")}</h2>
            <Models models={found.value.models} />
          </section>
        </>
      )}
    </main>
  );
}

function Sum({ row }: { row?: Row }) {
  const tokens = row?.usage?.tokens ?? {};
  const input = tokens.input_tokens ?? 0;
  const figures: [string, string | undefined][] = [
    [t("usage.calls"), number(row?.usage?.calls ?? 0)],
    [t("usage.input"), number(input)],
    [t("usage.output"), number(tokens.output_tokens ?? 0)],
    [t("usage.cached"), input ? percent((tokens.cache_read_tokens ?? 0) / input) : undefined],
    [t("usage.hits"), number(row?.response_cache_hits ?? 0)],
    [t("usage.cost"), money(row?.usage?.cost)],
    [t("usage.saved"), money(row?.usage?.cache_savings)],
  ];
  return (
    <dl class="figures-row">
      {figures.map(([name, value]) => (
        <Figure key={name} name={name} value={value} />
      ))}
    </dl>
  );
}

function money(amount: Money | undefined): string {
  return amount ? price(amount.pico_units ?? 0, amount.currency_code) : "–";
}

function Rows({ rows }: { rows: Row[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("usage.days")}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{t("usage.day")}</th>
            <th scope="col">{t("usage.model")}</th>
            <th scope="col" class="figure">{t("usage.calls")}</th>
            <th scope="col" class="figure">{t("usage.input")}</th>
            <th scope="col" class="figure">{t("usage.output")}</th>
            <th scope="col" class="figure">{t("usage.cached")}</th>
            <th scope="col" class="figure">{t("usage.hits")}</th>
            <th scope="col" class="figure">{t("usage.cost")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              <td>{day(row.day)}</td>
              <td>{nameOfModel(row.provider, row.model)}</td>
              <td class="figure">{number(row.usage?.calls ?? 0)}</td>
              <td class="figure">{number(row.usage?.tokens?.input_tokens ?? 0)}</td>
              <td class="figure">{number(row.usage?.tokens?.output_tokens ?? 0)}</td>
              <td class="figure">{number(row.usage?.tokens?.cache_read_tokens ?? 0)}</td>
              <td class="figure">{number(row.response_cache_hits ?? 0)}</td>
              <td class="figure">{money(row.usage?.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Models({ models }: { models: Model[] }) {
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label={t("usage.models")}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{t("usage.model")}</th>
            <th scope="col" class="figure">{t("usage.context")}</th>
            <th scope="col">{t("usage.capabilities")}</th>
          </tr>
        </thead>
        <tbody>
          {models.map((one) => (
            <tr key={one.name}>
              <th scope="row">
                {clean(one.name)} {one.is_default && <span class="badge">{t("usage.default")}</span>}
              </th>
              <td class="figure">{one.context_tokens ? number(one.context_tokens) : "–"}</td>
              <td class="quiet">{(one.capabilities ?? []).map(words).join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
