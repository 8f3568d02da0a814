// Lines over turns, each named at its end.
import { percent, t } from "../i18n";

export interface Line {
  id: string;
  name: string;
  values: number[];
}

const WIDTH = 640;
const HEIGHT = 260;
const START = 44;
const END = 12;
const BOTTOM = 26;

const TONES = 6;

/** Returns the look of a line. Two lines of the same colour have different dashes. */
function lookOf(index: number): { tone: string; dash: string } {
  return { tone: `tone-${index % TONES}`, dash: `dash-${(index + Math.floor(index / TONES)) % 3}` };
}

export function Curve({ lines }: { lines: Line[] }) {
  const turns = Math.max(...lines.map((one) => one.values.length - 1), 1);
  const x = (turn: number) => START + (turn * (WIDTH - START - END)) / turns;
  const y = (share: number) => 8 + (1 - share) * (HEIGHT - 8 - BOTTOM);
  const pathOf = (values: number[]) => {
    const whole = [...values, ...Array<number>(turns + 1 - values.length).fill(values[values.length - 1]!)];
    return whole.map((value, turn) => `${x(turn).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  };
  const steps = [0, 0.25, 0.5, 0.75, 1];
  const marks = [0, Math.round(turns / 4), Math.round(turns / 2), Math.round((3 * turns) / 4), turns];
  return (
    <figure class="curve">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={t("survival")} dir="ltr">
        {steps.map((step) => (
          <g key={step}>
            <line class="grid" x1={START} x2={WIDTH - END} y1={y(step)} y2={y(step)} />
            <text x={START - 6} y={y(step) + 4} text-anchor="end">
              {percent(step)}
            </text>
          </g>
        ))}
        {[...new Set(marks)].map((turn) => (
          <text key={turn} x={x(turn)} y={HEIGHT - 6} text-anchor="middle">
            {turn}
          </text>
        ))}
        {lines.map((line, index) => (
          <polyline key={line.id} class={`line ${lookOf(index).tone} ${lookOf(index).dash}`} points={pathOf(line.values)} />
        ))}
      </svg>
      <figcaption class="legend">
        {lines.map((line, index) => (
          <span key={line.id} class={`legend-item ${lookOf(index).tone}`}>
            <svg viewBox="0 0 28 8" aria-hidden="true">
              <line class={`line ${lookOf(index).dash}`} x1="1" x2="27" y1="4" y2="4" />
            </svg>
            {line.name} <span class="quiet">{percent(line.values[line.values.length - 1] ?? 1)}</span>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
