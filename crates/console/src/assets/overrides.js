// Overrides: other limits for single subjects of a rule.

import { get, put, remove, withQuery } from "./api.js";
import { confirm } from "./dialog.js";
import { announce, h } from "./dom.js";
import { field, notice, said } from "./form.js";
import { number, time } from "./format.js";
import { t } from "./messages.js";
import { pager } from "./pager.js";
import { attributes } from "./sample.js";
import { badge, table } from "./table.js";

export const OVERRIDES = "/api/v1/ratelimit/overrides";

const HOUR = 3_600_000;

/** Doubles a limit of a subject for an hour. */
export function boost(rule, subject) {
  const until = new Date(Date.now() + HOUR).toISOString();
  const limit = Math.min(rule.limit * 2, 4_294_967_295);
  return put(OVERRIDES, { rule_id: rule.rule_id, subject, limit, until, reason: t("overrides.boost_reason") });
}

/** Deletes an override at once: the limit of the rule applies again. */
export const end = (override) => remove(`${OVERRIDES}/${encodeURIComponent(override.id)}`);

/** The subject as text. */
export const subjectOf = (override) => Object.entries(override.subject).map(([name, value]) => `${name}=${value}`).join(", ");

/** The overrides of a rule. */
export function overridesOf(rule, signal, can) {
  const list = h("div", {});
  let page = 1;
  const look = async () => {
    try {
      const found = await get(withQuery(OVERRIDES, { rule_id: rule.id, page, page_size: 20 }), { signal });
      const rows = found.overrides.map((one) => [
        h("code", { class: "long" }, subjectOf(one)), number(one.limit), one.until ? time(one.until) : t("none"),
        badge(t(one.active ? "overrides.active" : "overrides.ended"), one.active ? "good" : "off"), one.reason ?? "",
        can("write_rules") ? h("button", { type: "button", class: "danger", "aria-label": `${t("delete")} ${subjectOf(one)}`, on: { click: () => drop(one, look) } }, t("delete")) : "",
      ]);
      list.replaceChildren(table(t("overrides.title"), [t("overrides.subject"), t("overrides.units"), t("overrides.until"), t("state"), t("reason"), t("actions")], rows, t("overrides.none")),
        found.pagination.total_count > 20 ? pager(found.pagination, (to) => { page = to; look(); }) : "");
    } catch (error) {
      if (!signal.aborted) list.replaceChildren(notice(said(error)));
    }
  };
  look();
  return h("section", { class: "overrides" },
    h("div", { class: "heading-row" }, h("h2", {}, t("overrides.title")),
      can("write_rules") ? h("button", { type: "button", on: { click: () => add(rule, look) } }, t("overrides.add")) : null),
    h("p", { class: "hint" }, t("overrides.hint")), list);
}

async function drop(one, look) {
  const done = await confirm({ title: t("overrides.delete"), text: t("overrides.delete_text", { subject: subjectOf(one) }), yes: t("delete"), danger: true, act: () => end(one) });
  if (!done) return;
  announce(t("deleted"));
  await look();
}

async function add(rule, look) {
  const subject = h("textarea", { rows: 2, class: "code", spellcheck: "false", placeholder: "tenant=acme" });
  const limit = h("input", { type: "number", inputmode: "numeric", min: 1, step: 1 });
  const until = h("input", { type: "datetime-local" });
  const reason = h("input", { type: "text", maxlength: 500, autocomplete: "off" });
  const body = h("div", {}, field("subject", t("overrides.subject"), subject, t("hint.override_subject")), field("limit", t("overrides.units"), limit),
    field("until", t("overrides.until"), until, t("hint.until")), field("reason", t("reason"), reason));
  const act = () => put(OVERRIDES, {
    rule_id: rule.id, subject: attributes(subject.value), limit: limit.value === "" ? null : Number(limit.value),
    until: until.value ? new Date(until.value).toISOString() : null, reason: reason.value || null,
  });
  const done = await confirm({ title: t("overrides.add"), body, yes: t("save"), act });
  if (!done) return;
  announce(t("saved"));
  await look();
}
