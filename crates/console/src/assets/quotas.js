// The list of quotas with their usage.

import { get, withQuery } from "./api.js";
import { meter } from "./bars.js";
import { announce, h } from "./dom.js";
import { checkbox, field, notice, said, select } from "./form.js";
import { number, percent, time } from "./format.js";
import { t } from "./messages.js";
import { pager } from "./pager.js";
import { link, note } from "./router.js";
import { badge, table } from "./table.js";

export const QUOTAS = "/api/v1/quotas";
export const SUBJECT_TYPES = ["tenant", "user", "api_key"];
const PAGE_SIZE = 10;

export const title = () => t("page.quotas");

/** Returns the API path of a quota. */
export const at = (id, ...rest) => [QUOTAS, encodeURIComponent(id), ...rest].join("/");

export async function render(content, { parameters, signal, can }) {
  const wanted = { subject_type: parameters.get("subject_type") ?? "", subject_id: parameters.get("subject_id") ?? "", enabled_only: parameters.get("enabled_only") ?? "", page: Number(parameters.get("page")) || 1 };
  const list = h("div", {});
  const look = async () => {
    note(["quotas"], { ...wanted, page: wanted.page > 1 ? wanted.page : "" });
    try {
      const found = await get(withQuery(QUOTAS, { ...wanted, page_size: PAGE_SIZE }), { signal });
      const used = await Promise.all(found.quotas.map((quota) => get(at(quota.id, "usage"), { signal }).catch(() => null)));
      list.replaceChildren(shown(found.quotas, used), pager(found.pagination, (page) => { wanted.page = page; look(); }));
      announce(t("found", { count: number(found.pagination.total_count) }));
    } catch (error) {
      if (!signal.aborted) list.replaceChildren(notice(said(error)));
    }
  };
  content.append(filters(wanted, look, can), list);
  await look();
}

function filters(wanted, look, can) {
  const type = select([["", t("any")], ...SUBJECT_TYPES.map((name) => [name, t(`subject_type.${name}`)])], wanted.subject_type);
  const id = h("input", { type: "search", value: wanted.subject_id, maxlength: 255, autocomplete: "off" });
  const enabled = checkbox("enabled_only", t("quotas.enabled_only"), wanted.enabled_only === "true");
  let timer;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      Object.assign(wanted, { subject_type: type.value, subject_id: id.value, enabled_only: enabled.input.checked ? "true" : "", page: 1 });
      look();
    }, 250);
  };
  for (const input of [type, id, enabled.input]) input.addEventListener("input", soon);
  return h("form", { class: "filters", role: "search", on: { submit: (event) => { event.preventDefault(); soon(); } } },
    field("subject_type", t("field.subject_type"), type), field("subject_id", t("field.subject_id"), id), enabled.element,
    can("write_quotas") ? h("a", { class: "button primary", href: link(["quotas", "new"]) }, t("quotas.new")) : null);
}

function shown(quotas, usages) {
  const rows = quotas.map((quota, i) => {
    const usage = usages[i];
    return [
      h("a", { href: link(["quotas", quota.id]), class: "long" }, quota.name),
      h("code", { class: "long" }, `${quota.subject_type}:${quota.subject_id}`),
      usage ? standing(usage, quota) : h("span", { class: "none" }, t("unknown")),
      t(`period.${quota.period}`),
      usage ? time(usage.reset_at) : "",
      badge(t(quota.enabled ? "enabled" : "disabled"), quota.enabled ? "good" : "off"),
    ];
  });
  const columns = [t("field.name"), t("subject"), t("used"), t("field.period"), t("quotas.resets"), t("state")];
  return table(t("page.quotas"), columns, rows, t("quotas.none"));
}

/** Usage as a bar and as text. */
export function standing(usage, quota) {
  return h("div", { class: "standing" },
    meter({ used: usage.used, limit: usage.limit, threshold: quota.alert_threshold_percent, label: `${t("used")}: ${quota.name}` }),
    h("span", {}, `${number(usage.used)} / ${number(usage.limit)} (${percent(usage.usage_percent)})`,
      usage.reserved ? ` ${t("quotas.reserved", { reserved: number(usage.reserved) })}` : "",
      usage.exceeded ? [" ", badge(t("quotas.exceeded"), "bad")] : ""));
}
