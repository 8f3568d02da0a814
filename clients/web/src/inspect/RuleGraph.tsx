// The rule graph: what acts on the left, quantities in the middle, endings on the right.
import { useMemo, useState } from "preact/hooks";
import { number, t } from "../i18n";
import { capitalize, clean, words } from "../text";
import type { DryRun } from "../types";
import { useMedia } from "../ui";

interface Node {
  node_id: string;
  kind: Kind;
  label: string;
  heat?: number;
}

export interface Graph {
  nodes?: Node[];
  edges?: { from_node_id: string; to_node_id: string; kind: string }[];
  dry_run?: DryRun;
}

type Kind = "quantity" | "action" | "event" | "loss" | "win" | "decay" | "schedule";

const COLUMNS: Kind[][] = [["action", "event", "schedule", "decay"], ["quantity"], ["loss", "win"]];
const ROW = 34;
const GAP = 140;
/** Width of a box, and the length of a label that fits it. */
const BOXES = { narrow: { box: 200, letters: 27 }, wide: { box: 280, letters: 39 } };

/** Returns the label of a node: the name or the message that its readers see, else the words of its id. */
function labelOfNode({ node_id: id, kind, label }: Node, spec: any): string {
  const [section = "", index = "", path = ""] = id.split("/").slice(1);
  const plain = () => capitalize(label.split(".").map(words).join(": "));
  switch (kind) {
    case "quantity":
      return clean(spec.labels?.[id]?.name || plain());
    case "loss":
    case "win":
      return clean(spec[section]?.[index]?.message || label);
    case "decay":
      return `${clean(spec.labels?.[path]?.name || capitalize(words(path.split(".").pop() ?? path)))}: ${t("cause.decay")}`;
    default:
      return clean(label === words(label) ? label : plain());
  }
}

export function RuleGraph({ graph, spec }: { graph: Graph; spec: any }) {
  const nodes = useMemo(() => (graph.nodes ?? []).map((one) => ({ ...one, label: labelOfNode(one, spec) })), [graph, spec]);
  const edges = graph.edges ?? [];
  const { box, letters } = useMedia("(min-width: 80rem)") ? BOXES.wide : BOXES.narrow;
  const width = 3 * box + 2 * GAP;
  const [chosen, setChosen] = useState<string>();
  const columns = useMemo(() => COLUMNS.map((kinds) => nodes.filter((one) => kinds.includes(one.kind))), [nodes]);
  const height = Math.max(...columns.map((one) => one.length), 1) * ROW;
  const places = new Map<string, { x: number; y: number }>();
  columns.forEach((column, index) =>
    column.forEach((node, row) =>
      places.set(node.node_id, {
        x: index * (box + GAP),
        y: ((row + 0.5) * height) / column.length - ROW / 2,
      }),
    ),
  );
  const hottest = Math.max(...nodes.map((one) => one.heat ?? 0), 1);
  const near = new Set(
    edges
      .filter((one) => one.from_node_id === chosen || one.to_node_id === chosen)
      .flatMap((one) => [one.from_node_id, one.to_node_id]),
  );
  const labelOf = (id: string) => nodes.find((one) => one.node_id === id)?.label ?? clean(id);
  return (
    <div class="stack-small">
      <p class="quiet">{t("graph.about", { n: graph.dry_run?.runs ?? 0 })}</p>
      <ul class="graph-legend" aria-hidden="true">
        {(["action", "event", "quantity", "loss", "win"] as const).map((kind) => (
          <li key={kind} class={`kind-${kind}`}>
            {t(`graph.${kind}`)}
          </li>
        ))}
        <li class="kind-raises">{t("graph.raises")}</li>
        <li class="kind-lowers">{t("graph.lowers")}</li>
        <li class="kind-reads">{t("graph.reads")}</li>
      </ul>
      <div class="graph" tabIndex={0} role="region" aria-label={t("inspect.graph")}>
        <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} dir="ltr" aria-hidden="true">
          {edges.map((edge, index) => {
            const from = places.get(edge.from_node_id);
            const to = places.get(edge.to_node_id);
            if (!from || !to || from.x === to.x) return null;
            const [left, right] = from.x < to.x ? [from, to] : [to, from];
            const x1 = left.x + box;
            const middle = (x1 + right.x) / 2;
            const isNear = edge.from_node_id === chosen || edge.to_node_id === chosen;
            const state = chosen === undefined ? "" : isNear ? "near" : "far";
            return (
              <path
                key={index}
                class={`edge ${edge.kind} ${state}`}
                d={`M${x1} ${left.y + ROW / 2}C${middle} ${left.y + ROW / 2} ${middle} ${right.y + ROW / 2} ${right.x} ${right.y + ROW / 2}`}
              />
            );
          })}
          {nodes.map((node) => {
            const place = places.get(node.node_id);
            if (!place) return null;
            const { label } = node;
            const state = chosen === undefined ? "" : node.node_id === chosen || near.has(node.node_id) ? "near" : "far";
            return (
              <g
                key={node.node_id}
                class={`node ${node.kind} ${state} ${node.heat ? "" : "cold"}`}
                transform={`translate(${place.x} ${place.y})`}
                onPointerEnter={() => setChosen(node.node_id)}
                onPointerLeave={() => setChosen(undefined)}
              >
                <title>{`${label}: ${number(node.heat ?? 0)}`}</title>
                <rect class="node-heat" width={(box * Math.sqrt(node.heat ?? 0)) / Math.sqrt(hottest)} height={ROW - 6} rx="5" y="3" />
                <rect class="node-box" width={box} height={ROW - 6} rx="5" y="3" />
                <text x="9" y={ROW / 2 + 4}>
                  {label.length > letters ? `${label.slice(0, letters - 1)}…` : label}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
      <details>
        <summary>{t("graph.table")}</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={t("graph.table")}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{t("graph.rule")}</th>
                <th scope="col">{t("graph.kind")}</th>
                <th scope="col" class="figure">
                  {t("graph.heat")}
                </th>
                <th scope="col">{t("graph.links")}</th>
              </tr>
            </thead>
            <tbody>
              {nodes.map((node) => (
                <tr key={node.node_id}>
                  <th scope="row" dir="auto">
                    {node.label}
                  </th>
                  <td>{t(`graph.${node.kind}`)}</td>
                  <td class="figure">{number(node.heat ?? 0)}</td>
                  <td dir="auto">
                    {edges
                      .filter((one) => one.from_node_id === node.node_id)
                      .map((one) => `${edgeWord(one.kind)} ${labelOf(one.to_node_id)}`)
                      .join(", ")}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}

function edgeWord(kind: string): string {
  if (kind === "raises") return t("graph.raises");
  if (kind === "lowers") return t("graph.lowers");
  return kind === "reads" ? t("graph.reads") : t("graph.writes");
}
