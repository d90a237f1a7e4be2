// The holders of a subject's places.

import { get, post, withQuery } from "./api.js";
import { confirm } from "./dialog.js";
import { announce, h } from "./dom.js";
import { reasonField, said } from "./form.js";
import { ago, number } from "./format.js";
import { t } from "./messages.js";
import { table } from "./table.js";

const PATH = "/api/v1/ratelimit/holders";

/** Loads the holders of the concurrency rules that decide; `found` has them by the id of the rule, `problem` why there are none. */
export async function load(seen, { can, signal }) {
  const decides = (rule) => rule.applies && rule.algorithm === "concurrency";
  if (!can("read_usage") || !seen.rules.some(decides)) return { found: new Map() };
  try {
    const { rules } = await get(withQuery(PATH, { scope: seen.scope, identifier: seen.identifier }), { signal });
    return { found: new Map(rules.map((rule) => [rule.rule_id, rule])) };
  } catch (error) {
    if (signal.aborted) throw error;
    return { found: new Map(), problem: `${t("holders.unknown")} ${said(error)}` };
  }
}

/** The holders of one rule's places, the first to end first. */
export function list(held, seen, { can, look }) {
  const columns = [t("holders.holder"), t("holders.places"), t("holders.ends")];
  const ending = can("reset_counters");
  const row = (one) => [
    h("code", {}, one.holder), number(one.places),
    h("time", { datetime: one.expires_at, title: one.expires_at }, ago(one.expires_in_ms)),
    ...(ending ? [h("button", { type: "button", class: "danger", on: { click: () => end(one.holder, seen, look) } }, t("holders.end"))] : []),
  ];
  return [
    h("p", {}, t("holders.taken", { taken: number(held.taken), limit: number(held.limit), total: number(held.total) })),
    table(t("holders.title"), ending ? [...columns, t("holders.end")] : columns, held.holders.map(row), t("holders.none")),
    held.total > held.holders.length ? h("p", { class: "hint" }, t("holders.more", { listed: number(held.holders.length) })) : null,
  ];
}

async function end(holder, seen, look) {
  const reason = reasonField();
  const done = await confirm({
    title: t("holders.end"), text: t("holders.end_text", { holder }), body: reason.element, yes: t("holders.end"), danger: true,
    act: () => post(`${PATH}/${encodeURIComponent(holder)}/end`, { scope: seen.scope, identifier: seen.identifier, reason: reason.input.value }),
  });
  if (done) {
    announce(t("holders.was_ended"));
    await look();
  }
}
