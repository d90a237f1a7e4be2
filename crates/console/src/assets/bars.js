// Bar charts and usage bars.

import { h, s } from "./dom.js";
import { compact, number, percent } from "./format.js";
import { ticks } from "./chart.js";

const MARGIN = { top: 10, right: 12, bottom: 36, left: 56 };

/** A bar chart; each bar is `{name, value, most, title}`, where `most` is its maximum. */
export function barChart({ label, bars, yLabel, height = 220 }) {
  const svg = s("svg", { class: "chart-drawing", height, "aria-hidden": "true" });
  const plot = h("div", { class: "chart-plot" }, svg);
  const rows = bars.map((bar) => h("tr", {}, h("th", { scope: "row" }, bar.name), h("td", {}, number(bar.value)), h("td", {}, number(bar.most))));
  const element = h("figure", { class: "chart" }, h("figcaption", {}, h("span", { class: "chart-title" }, label)), plot,
    h("table", { class: "hidden-visually" }, h("caption", {}, label), h("tbody", {}, rows)));
  const draw = () => {
    const width = Math.max(plot.clientWidth, 200);
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren(...drawn(bars, width, height, yLabel));
  };
  new ResizeObserver(draw).observe(plot);
  return element;
}

function drawn(bars, width, height, yLabel) {
  const marks = ticks(Math.max(0, ...bars.map((bar) => Math.max(bar.value, bar.most))));
  const [top, inner] = [marks[marks.length - 1], height - MARGIN.top - MARGIN.bottom];
  const py = (value) => MARGIN.top + inner - (value / top) * inner;
  const each = (width - MARGIN.left - MARGIN.right) / Math.max(bars.length, 1);
  const thick = Math.min(each * 0.7, 48);
  const every = Math.ceil(78 / each);
  const grid = marks.map((mark) => s("g", {},
    s("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: py(mark), y2: py(mark) }),
    s("text", { class: "tick", x: MARGIN.left - 6, y: py(mark) + 4, "text-anchor": "end" }, compact(mark))));
  const shown = bars.map((bar, i) => {
    const middle = MARGIN.left + each * (i + 0.5);
    const kind = bar.value >= bar.most ? "full" : "part";
    return s("g", {}, s("title", {}, bar.title),
      s("rect", { class: "bar-hit", x: middle - each / 2, y: MARGIN.top, width: each, height: inner }),
      s("rect", { class: `bar ${kind}`, x: middle - thick / 2, y: py(bar.value), width: thick, height: Math.max(0, py(0) - py(bar.value)) }),
      s("line", { class: "bar-most", x1: middle - thick / 2 - 3, x2: middle + thick / 2 + 3, y1: py(bar.most), y2: py(bar.most) }),
      i % every === 0 ? s("text", { class: "tick", x: middle, y: height - MARGIN.bottom + 15, "text-anchor": "middle" }, bar.name) : null);
  });
  return [...grid, ...shown, s("text", { class: "axis", x: 2, y: height - 3 }, yLabel)];
}

/** A usage bar, with a line at the alert threshold. */
export function meter({ used, limit, threshold, label }) {
  const part = limit > 0 ? Math.min(100, (used / limit) * 100) : 0;
  const kind = used >= limit ? "full" : threshold && part >= threshold ? "warn" : "part";
  return h("div", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": limit, "aria-valuenow": Math.min(used, limit), "aria-valuetext": `${number(used)} / ${number(limit)} (${percent(part)})` },
    s("svg", { class: "meter-drawing", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect", { class: "meter-room", width: 100, height: 10 }),
      s("rect", { class: `bar ${kind}`, width: part, height: 10 }),
      threshold ? s("line", { class: "meter-threshold", x1: threshold, x2: threshold, y1: 0, y2: 10 }) : null));
}
