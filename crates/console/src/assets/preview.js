// A preview of a limit, computed by the server's engine.

import { post, Refused } from "./api.js";
import { lineChart } from "./chart.js";
import { h } from "./dom.js";
import { compact, number, percent, seconds } from "./format.js";
import { t } from "./messages.js";

/** A chart of a burst and a steady stream under the limit in the form. */
export function plot(signal) {
  const chart = lineChart({
    label: t("preview.title"), x: (value) => `${compact(value / 1000)} ${t("unit.s")}`, y: compact, xLabel: t("axis.since_start"), yLabel: t("axis.admitted"),
    series: [
      { name: t("preview.burst"), kind: "admitted" },
      { name: t("preview.steady"), kind: "denied" },
      { name: t("preview.asked"), kind: "asked" },
    ],
    height: 260, step: true,
  });
  const words = h("ul", { class: "preview-words", "aria-live": "polite" });
  const element = h("aside", { class: "preview", "aria-label": t("preview.title") }, chart.element, words);
  let timer;
  let latest = 0;
  const look = async (rule) => {
    const mine = ++latest;
    try {
      const seen = await post("/console/preview", rule, { signal });
      if (mine !== latest) return;
      chart.show(seen.burst.map(([at, , admitted], i) => [at, admitted, seen.steady[i][2], seen.steady[i][1]]));
      words.replaceChildren(...said(seen).map((text) => h("li", {}, text)));
    } catch (error) {
      // Errors are shown on save; until then there is nothing to plot.
      if (mine === latest && error instanceof Refused) {
        chart.show([]);
        words.replaceChildren(h("li", {}, t("preview.none")));
      }
    }
  };
  return {
    element,
    show(rule) {
      clearTimeout(timer);
      // The pattern may still be empty. Of limits by plan, the one that all others have is shown.
      const limit = typeof rule.limit === "object" && rule.limit ? lowest(rule.limit) : rule.limit;
      const { when, per, priority, stops, ...rest } = rule;
      const likely = { ...rest, limit, scope: rule.scope ?? "user", identifier_pattern: "*", name: null };
      if (!(limit >= 1) || !(rule.window_seconds >= 1)) {
        latest += 1;
        chart.show([]);
        words.replaceChildren(h("li", {}, t("preview.none")));
        return;
      }
      timer = setTimeout(() => look(likely), 150);
    },
  };
}

/** The default of limits by plan, or the lowest. */
function lowest({ by, default: fallback, ...values }) {
  return fallback ?? Math.min(...Object.values(values).filter((value) => value >= 1));
}

function said({ capacity, window_seconds, burst, steady }) {
  const [first, last] = [burst[0], burst[burst.length - 1]];
  const [, asked, admitted] = steady[steady.length - 1];
  return [
    t("preview.at_once", { count: number(first[2]), capacity: number(capacity) }),
    t("preview.in_two", { count: number(last[2]), window: seconds(window_seconds * 2) }),
    t("preview.of_steady", { asked: number(asked), admitted: number(admitted), part: percent(asked ? (admitted / asked) * 100 : 0) }),
  ];
}
