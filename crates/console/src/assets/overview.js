// Live metrics of the server.

import { get, watch, withQuery } from "./api.js";
import { lineChart } from "./chart.js";
import { h } from "./dom.js";
import { clockTime, compact, micros, number, time } from "./format.js";
import { t } from "./messages.js";
import { link } from "./router.js";
import { badge, table } from "./table.js";

const KEPT = 300;

export const title = () => t("page.overview");

export async function render(content, { signal, can }) {
  const decisions = lineChart({
    label: t("overview.decisions"), x: clockTime, y: compact, xLabel: t("axis.time"), yLabel: t("axis.per_second"),
    series: [
      { name: t("admitted"), kind: "admitted" },
      { name: t("denied"), kind: "denied" },
      { name: t("degraded"), kind: "degraded" },
    ],
  });
  const durations = lineChart({
    label: t("overview.duration"), x: clockTime, y: micros, xLabel: t("axis.time"), yLabel: t("axis.duration"),
    series: [{ name: t("p50"), kind: "admitted" }, { name: t("p99"), kind: "denied" }],
  });
  const [tiles, health, limited] = [h("div", { class: "tiles" }), h("div", { class: "cards" }), h("section", {})];
  content.append(tiles, h("div", { class: "charts" }, decisions.element, durations.element), limited, health);
  let beats = [];
  let shownLimited = "";
  await watch(async () => {
    const after = beats[beats.length - 1]?.seq ?? 0;
    const seen = await get(withQuery("/console/overview", { after }), { signal });
    // The counters of a restarted server start from 0.
    if (seen.beats.length === 0 && beats.length && Date.parse(seen.now) - beats[beats.length - 1].at > 5000) beats = [];
    beats = [...beats, ...seen.beats].slice(-KEPT);
    const last = beats[beats.length - 1];
    tiles.replaceChildren(...figures(last));
    decisions.show(beats.map((it) => [it.at, it.admitted, it.denied, it.degraded]), spoken(last));
    durations.show(beats.map((it) => [it.at, it.p50, it.p99]), `${t("p50")} ${micros(last?.p50)}, ${t("p99")} ${micros(last?.p99)}`);
    health.replaceChildren(...cards(seen));
    // Unchanged elements are kept, so that they keep the focus.
    const text = JSON.stringify(seen.limited.map(({ last_at, ...rest }) => rest));
    if (text !== shownLimited || seen.limited.length) {
      if (!limited.contains(document.activeElement)) limited.replaceChildren(...subjects(seen, can));
      shownLimited = text;
    }
    if (!limited.firstChild) limited.replaceChildren(...subjects(seen, can));
  }, 1000, signal);
}

function spoken(last) {
  return last ? `${t("admitted")} ${compact(last.admitted)}, ${t("denied")} ${compact(last.denied)}, ${t("degraded")} ${compact(last.degraded)}` : "";
}

function figures(last) {
  const tile = (name, value, kind, unit) => h("div", { class: `tile ${kind}` }, h("span", { class: "tile-name" }, name),
    h("span", { class: "tile-value" }, value, unit ? h("small", {}, unit) : null));
  const rate = (value) => (last ? compact(value) : "–");
  const unit = t("unit.per_second");
  return [
    tile(t("admitted"), rate(last?.admitted), "admitted", unit),
    tile(t("denied"), rate(last?.denied), "denied", unit),
    tile(t("degraded"), rate(last?.degraded), "degraded", unit),
    tile(t("p50"), micros(last?.p50), "plain"),
    tile(t("p99"), micros(last?.p99), "plain"),
  ];
}

function cards({ server, store, database, rules, quotas }) {
  const card = (name, value, more) => h("div", { class: "card" }, h("h3", {}, name), h("div", { class: "card-value" }, value), h("div", { class: "card-more" }, more));
  const state = ({ ok, error }) => [badge(t(ok ? "health.ok" : "health.error"), ok ? "good" : "bad"), error ? h("p", { class: "error-text" }, error) : null];
  const confirmed = (it) => (it.confirmed_at ? [t("overview.confirmed"), " ", time(it.confirmed_at, { near: true })] : t("overview.unconfirmed"));
  return [
    card(t("overview.store"), state(store), server.store),
    card(t("overview.database"), state(database), confirmed(rules)),
    card(t("overview.rules"), t("overview.revision", { revision: number(rules.revision) }), t("overview.rule_count", { count: number(rules.count) })),
    card(t("overview.quotas"), t("overview.revision", { revision: number(quotas.revision) }), t("overview.quota_count", { count: number(quotas.count) })),
    card(t("overview.config"), h("code", {}, server.config_version), t("overview.version", { version: server.version })),
    card(t("overview.up"), time(server.started_at, { near: true }), server.environment),
  ];
}

function subjects({ limited, masked }, can) {
  const rows = limited.map((it) => [
    h("code", { class: "long" }, `${it.scope}:${it.identifier}`),
    it.rule_id && can("read_rules") ? h("a", { href: link(["rules", it.rule_id]) }, it.rule_name) : it.rule_name,
    number(it.denied),
    time(it.last_at, { near: true }),
    !masked && !["key", "attributes"].includes(it.scope) && can("explain") ? h("a", { href: link(["explain"], { scope: it.scope, identifier: it.identifier }) }, t("explain.this")) : "",
  ]);
  const columns = [t("subject"), t("rule"), t("overview.denials"), t("overview.last"), t("actions")];
  return [h("h2", {}, t("overview.limited")), h("p", { class: "hint" }, t(masked ? "overview.masked" : "overview.limited_hint")),
    table(t("overview.limited"), columns, rows, t("overview.no_denials"))];
}
