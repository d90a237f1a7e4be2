// Line charts: axes, units, and values under the pointer or the arrow keys.

import { h, s } from "./dom.js";

const MARGIN = { top: 10, right: 12, bottom: 34, left: 56 };

/**
 * A line chart. `series` are `{name, kind}`, where the kind is a class for colour and dashes;
 * `x` and `y` format values of the axes, and `xLabel` and `yLabel` are their labels.
 */
export function lineChart({ label, series, x, y, xLabel, yLabel, height = 220, step = false }) {
  const svg = s("svg", { class: "chart-drawing", height, "aria-hidden": "true" });
  const tip = h("div", { class: "chart-tip", hidden: true });
  const plot = h("div", { class: "chart-plot", tabindex: "0", role: "img", "aria-label": label }, svg, tip);
  const element = h("figure", { class: "chart" },
    h("figcaption", {}, h("span", { class: "chart-title" }, label), legend(series)), plot);
  const chart = { svg, tip, plot, label, series, x, y, xLabel, yLabel, height, step, points: [], at: null };
  follow(chart);
  new ResizeObserver(() => draw(chart)).observe(plot);
  return {
    element,
    /** Shows points: arrays of an x and one value per series, or null. */
    show(points, spoken) {
      chart.points = points;
      if (spoken) plot.setAttribute("aria-label", `${label}: ${spoken}`);
      draw(chart);
    },
  };
}

/** The legend, if there is more than one series. */
export function legend(series) {
  return h("span", { class: "legend" }, series.map(({ name, kind }) =>
    h("span", { class: "legend-entry" },
      s("svg", { class: "legend-line", width: 26, height: 10, "aria-hidden": "true" },
        s("line", { class: `line ${kind}`, x1: 1, x2: 25, y1: 5, y2: 5 })), name)));
}

/** Returns about `count` round numbers from 0 to beyond `most`. */
export function ticks(most, count = 4) {
  if (!(most > 0)) return [0, 1];
  const raw = most / count;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((factor) => factor >= raw);
  const all = [];
  for (let value = 0; value < most + step; value += step) all.push(Number(value.toPrecision(12)));
  return all;
}

function scale(chart) {
  const width = Math.max(chart.plot.clientWidth, 200);
  const xs = chart.points.map(([at]) => at);
  const values = chart.points.flatMap((point) => point.slice(1)).filter((value) => value !== null);
  const marks = ticks(Math.max(0, ...values));
  const [from, to, top] = [xs[0] ?? 0, xs[xs.length - 1] ?? 1, marks[marks.length - 1]];
  const inner = { width: width - MARGIN.left - MARGIN.right, height: chart.height - MARGIN.top - MARGIN.bottom };
  return {
    width, marks, from, to,
    px: (at) => MARGIN.left + (to === from ? 0 : ((at - from) / (to - from)) * inner.width),
    py: (value) => MARGIN.top + inner.height - (value / top) * inner.height,
  };
}

function draw(chart) {
  const view = scale(chart);
  chart.svg.setAttribute("width", view.width);
  chart.svg.setAttribute("viewBox", `0 0 ${view.width} ${chart.height}`);
  chart.view = view;
  chart.svg.replaceChildren(...axes(chart, view), ...lines(chart, view), s("g", { class: "chart-cursor" }));
  if (chart.at !== null) point(chart, Math.min(chart.at, chart.points.length - 1));
}

function axes(chart, view) {
  const bottom = chart.height - MARGIN.bottom;
  const across = view.marks.map((mark) => s("g", {},
    s("line", { class: "grid", x1: MARGIN.left, x2: view.width - MARGIN.right, y1: view.py(mark), y2: view.py(mark) }),
    s("text", { class: "tick", x: MARGIN.left - 6, y: view.py(mark) + 4, "text-anchor": "end" }, chart.y(mark))));
  const count = view.width < 420 ? 2 : 4;
  const along = Array.from({ length: count + 1 }, (_, i) => view.from + ((view.to - view.from) * i) / count);
  const anchor = (i) => (i === 0 ? "start" : i === count ? "end" : "middle");
  const down = chart.points.length < 2 ? [] : along.map((at, i) =>
    s("text", { class: "tick", x: view.px(at), y: bottom + 15, "text-anchor": anchor(i) }, chart.x(at)));
  return [...across, ...down,
    s("text", { class: "axis", x: view.width - MARGIN.right, y: chart.height - 3, "text-anchor": "end" }, chart.xLabel),
    s("text", { class: "axis", x: 2, y: chart.height - 3 }, chart.yLabel)];
}

function lines(chart, view) {
  return chart.series.map(({ kind }, i) => {
    let path = "";
    let before = null;
    chart.points.forEach((row, at) => {
      const value = row[i + 1];
      const after = chart.points[at + 1]?.[i + 1] ?? null;
      if (value !== null) {
        const [px, py] = [view.px(row[0]), view.py(value).toFixed(1)];
        // A line of one point would be invisible.
        if (before === null && after === null) path += `M${(px - 1.5).toFixed(1)} ${py}h3`;
        else path += before === null ? `M${px.toFixed(1)} ${py}` : chart.step ? `H${px.toFixed(1)}V${py}` : `L${px.toFixed(1)} ${py}`;
      }
      before = value;
    });
    return s("path", { class: `line ${kind}`, d: path });
  });
}

function follow(chart) {
  const nearest = (event) => {
    const left = event.clientX - chart.plot.getBoundingClientRect().left;
    let best = 0;
    chart.points.forEach(([at], i) => {
      if (Math.abs(chart.view.px(at) - left) < Math.abs(chart.view.px(chart.points[best][0]) - left)) best = i;
    });
    return best;
  };
  chart.plot.addEventListener("pointermove", (event) => chart.points.length && point(chart, nearest(event)));
  chart.plot.addEventListener("pointerleave", () => leave(chart));
  chart.plot.addEventListener("blur", () => leave(chart));
  chart.plot.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") leave(chart);
    if (!move || !chart.points.length) return;
    event.preventDefault();
    const last = chart.points.length - 1;
    point(chart, Math.max(0, Math.min(last, (chart.at ?? last) + move)));
  });
}

function leave(chart) {
  chart.at = null;
  chart.tip.hidden = true;
  chart.svg.querySelector(".chart-cursor")?.replaceChildren();
}

function point(chart, at) {
  chart.at = at;
  const row = chart.points[at];
  if (!row) return leave(chart);
  const left = chart.view.px(row[0]);
  const bottom = chart.height - MARGIN.bottom;
  const marks = chart.series.map(({ kind }, i) =>
    row[i + 1] === null ? null : s("circle", { class: `dot ${kind}`, cx: left, cy: chart.view.py(row[i + 1]), r: 4 }));
  chart.svg.querySelector(".chart-cursor").replaceChildren(
    s("line", { class: "cursor", x1: left, x2: left, y1: MARGIN.top, y2: bottom }), ...marks.filter(Boolean));
  chart.tip.replaceChildren(h("div", { class: "chart-tip-head" }, chart.x(row[0])),
    ...chart.series.map(({ name }, i) => h("div", {}, `${name}: `, h("b", {}, row[i + 1] === null ? "–" : chart.y(row[i + 1])))));
  chart.tip.hidden = false;
  const room = chart.view.width - chart.tip.offsetWidth - 8;
  chart.tip.style.left = `${Math.max(0, Math.min(left + 12, room))}px`;
}
