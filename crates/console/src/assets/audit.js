// The audit log.

import { get, withQuery } from "./api.js";
import { changed, comparison } from "./diff.js";
import { announce, h } from "./dom.js";
import { field, notice, said, select } from "./form.js";
import { number, time } from "./format.js";
import { t } from "./messages.js";
import { pager } from "./pager.js";
import { note } from "./router.js";

const ACTIONS = ["rule.create", "rule.update", "rule.delete", "override.set", "override.delete", "counter.reset", "lease.end", "quota.create", "quota.update", "quota.delete", "quota.reset", "config.reload"];

export const title = () => t("page.audit");

export async function render(content, { parameters, signal }) {
  const names = ["actor", "action", "target", "since", "until"];
  const wanted = Object.fromEntries(names.map((name) => [name, parameters.get(name) ?? ""]));
  let page = 1;
  const list = h("div", {});
  const look = async () => {
    note(["audit"], wanted);
    const asked = { ...wanted, since: utc(wanted.since), until: utc(wanted.until), page, page_size: 20 };
    try {
      const found = await get(withQuery("/api/v1/ratelimit/audit", asked), { signal });
      list.replaceChildren(found.entries.length ? h("ol", { class: "audit" }, found.entries.map(entry)) : h("p", { class: "empty" }, t("audit.none")),
        pager(found.pagination, (to) => { page = to; look(); }));
      announce(t("found", { count: number(found.pagination.total_count) }));
    } catch (error) {
      if (!signal.aborted) list.replaceChildren(notice(said(error)));
    }
  };
  content.append(filters(wanted, () => { page = 1; look(); }), list);
  await look();
}

/** Converts a local time to the API's format. */
function utc(local) {
  const moment = new Date(local);
  return Number.isNaN(moment.getTime()) ? "" : moment.toISOString();
}

function filters(wanted, look) {
  const text = (name) => h("input", { type: "search", value: wanted[name], autocomplete: "off", spellcheck: "false" });
  const moment = (name) => h("input", { type: "datetime-local", value: wanted[name] });
  const inputs = {
    actor: text("actor"),
    action: select([["", t("any")], ...ACTIONS.map((name) => [name, t(`audit.${name}`)])], wanted.action),
    target: text("target"),
    since: moment("since"),
    until: moment("until"),
  };
  let timer;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      for (const [name, input] of Object.entries(inputs)) wanted[name] = input.value;
      look();
    }, 250);
  };
  for (const input of Object.values(inputs)) input.addEventListener("input", soon);
  return h("form", { class: "filters", role: "search", on: { submit: (event) => { event.preventDefault(); soon(); } } },
    Object.entries(inputs).map(([name, input]) => field(name, t(`audit.${name}`), input)));
}

function entry(it) {
  const names = changed(it.before, it.after);
  const target = h("code", { class: "long" }, it.target);
  const name = it.target_name ? [h("span", { class: "long" }, it.target_name), " "] : "";
  const outcome = it.after?.outcome ? [" ", h("span", { class: "hint" }, t(`audit.outcome.${it.after.outcome}`))] : "";
  const what = h("span", {}, h("b", {}, t(`audit.${it.action}`)), " ", name, target, outcome);
  const head = [time(it.at), h("span", { class: "actor-name long" }, it.actor), what];
  const inside = [
    it.reason ? h("p", {}, `${t("reason")}: `, h("q", { class: "long" }, it.reason)) : "",
    names.length ? comparison([[t("before"), it.before], [t("after"), it.after]].filter(([, state]) => state), names, t("rules.changes")) : "",
    h("p", { class: "hint" }, `${t("audit.request")}: `, h("code", { class: "long" }, it.request_id)),
  ];
  return h("li", {}, h("details", {}, h("summary", {}, head), h("div", { class: "audit-inside" }, inside)));
}
