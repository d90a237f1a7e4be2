// The list of rules, with search, filters and pagination.

import { get, remove, withQuery } from "./api.js";
import { confirm } from "./dialog.js";
import { announce, h } from "./dom.js";
import { checkbox, field, notice, said, select } from "./form.js";
import { limit, number, time } from "./format.js";
import { t } from "./messages.js";
import { pager } from "./pager.js";
import { link, note } from "./router.js";
import { badge, table } from "./table.js";

export const RULES = "/api/v1/ratelimit/rules";
export const SCOPES = ["service", "user", "endpoint"];

export const title = () => t("page.rules");

export async function render(content, { parameters, signal, can }) {
  const wanted = { search: parameters.get("search") ?? "", scope: parameters.get("scope") ?? "", enabled_only: parameters.get("enabled_only") ?? "", page: Number(parameters.get("page")) || 1 };
  const list = h("div", { "aria-live": "off" });
  const look = async () => {
    note(["rules"], { ...wanted, page: wanted.page > 1 ? wanted.page : "" });
    try {
      const found = await get(withQuery(RULES, { ...wanted, page_size: 20 }), { signal });
      list.replaceChildren(shown(found.rules, can, look), pager(found.pagination, (page) => { wanted.page = page; look(); }));
      announce(t("found", { count: number(found.pagination.total_count) }));
    } catch (error) {
      if (!signal.aborted) list.replaceChildren(notice(said(error)));
    }
  };
  content.append(filters(wanted, look, can), list);
  await look();
}

function filters(wanted, look, can) {
  const search = h("input", { type: "search", value: wanted.search, maxlength: 255, autocomplete: "off" });
  const scope = select([["", t("any")], ...[...SCOPES, "attributes"].map((name) => [name, t(`scope.${name}`)])], wanted.scope);
  const enabled = checkbox("enabled_only", t("rules.enabled_only"), wanted.enabled_only === "true");
  let timer;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      Object.assign(wanted, { search: search.value, scope: scope.value, enabled_only: enabled.input.checked ? "true" : "", page: 1 });
      look();
    }, 200);
  };
  for (const input of [search, scope, enabled.input]) input.addEventListener("input", soon);
  return h("form", { class: "filters", role: "search", on: { submit: (event) => { event.preventDefault(); soon(); } } },
    field("search", t("search"), search), field("scope", t("scope"), scope), enabled.element,
    can("write_rules") ? h("a", { class: "button primary", href: link(["rules", "new"]) }, t("rules.new")) : null,
    can("write_rules") ? h("a", { class: "button", href: link(["rules", "new-attributes"]) }, t("rules.new_attributes")) : null);
}

function shown(rules, can, look) {
  const rows = rules.map((rule) => [
    h("a", { href: link(["rules", rule.id]), class: "long" }, rule.name ?? `${rule.scope}:${rule.identifier_pattern}`),
    h("code", { class: "long" }, `${rule.scope}:${rule.identifier_pattern}`),
    [limit(rule), rule.burst ? h("small", {}, t("rules.burst", { burst: number(rule.burst) })) : null],
    t(`algorithm.${rule.algorithm}`),
    badge(t(rule.enabled ? "enabled" : "disabled"), rule.enabled ? "good" : "off"),
    time(rule.updated_at),
    h("div", { class: "row-actions" },
      h("a", { class: "button", href: link(["rules", rule.id]), "aria-label": `${t(can("write_rules") ? "edit" : "view")} ${rule.name ?? rule.identifier_pattern}` }, t(can("write_rules") ? "edit" : "view")),
      can("delete_rules") ? h("button", { type: "button", class: "danger", "aria-label": `${t("delete")} ${rule.name ?? rule.identifier_pattern}`, on: { click: () => drop(rule, look) } }, t("delete")) : null),
  ]);
  const columns = [t("field.name"), t("subjects"), t("field.limit"), t("field.algorithm"), t("state"), t("changed"), t("actions")];
  return table(t("page.rules"), columns, rows, t("rules.none"));
}

async function drop(rule, look) {
  const name = rule.name ?? `${rule.scope}:${rule.identifier_pattern}`;
  const done = await confirm({
    title: t("rules.delete"), text: t("rules.delete_text", { name, subjects: `${rule.scope}:${rule.identifier_pattern}` }),
    yes: t("delete"), danger: true, act: () => remove(`${RULES}/${encodeURIComponent(rule.id)}`),
  });
  if (done) {
    announce(t("deleted"));
    await look();
  }
}
