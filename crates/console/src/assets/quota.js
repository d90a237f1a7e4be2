// One quota: current usage, history and actions.

import { get, post, remove, watch, withQuery } from "./api.js";
import { barChart } from "./bars.js";
import { confirm } from "./dialog.js";
import { announce, h } from "./dom.js";
import { clear, complain, field, notice, reasonField, said } from "./form.js";
import { number, percent, time } from "./format.js";
import { eventTable } from "./events.js";
import { t } from "./messages.js";
import { at, standing } from "./quotas.js";
import { go, link } from "./router.js";

export const title = () => t("quotas.one");

export async function render(content, { parts: [, id], signal, can }) {
  let quota;
  try {
    quota = await get(at(id), { signal });
  } catch (error) {
    if (!signal.aborted) content.append(notice(said(error)), h("a", { href: link(["quotas"]) }, t("quotas.back")));
    return;
  }
  const [usage, history, events] = [h("div", {}), h("div", {}), h("div", {})];
  const look = async () => {
    const [used, periods, told] = await Promise.all([
      get(at(id, "usage"), { signal }),
      get(withQuery(at(id, "history"), { page_size: 30 }), { signal }),
      get(withQuery("/api/v1/events", { quota_id: id, order: "newest", deliveries: "true", limit: 10 }), { signal }),
    ]);
    usage.replaceChildren(standing(used, quota), h("p", { class: "hint" }, t("quotas.resets"), " ", time(used.reset_at)));
    draw(history, periods.history);
    events.replaceChildren(eventTable(told.events));
  };
  content.append(summary(quota, can), h("section", { class: "card" }, h("h2", {}, t("quotas.now")), usage, actions(quota, can, look)),
    h("section", {}, history), h("section", {}, h("h2", {}, t("page.events")), events));
  await watch(look, 2000, signal);
}

function summary(quota, can) {
  const drop = async () => {
    const done = await confirm({
      title: t("quotas.delete"), text: t("quotas.delete_text", { name: quota.name }), yes: t("delete"), danger: true, act: () => remove(at(quota.id)),
    });
    if (done) go(["quotas"]);
  };
  return h("div", { class: "heading-row" },
    h("div", {}, h("h2", { class: "long" }, quota.name),
      h("p", {}, h("code", { class: "long" }, `${quota.subject_type}:${quota.subject_id}`), " · ", t(`period.${quota.period}`), " · ", quota.time_zone ?? "UTC", " · ",
        quota.alert_threshold_percent === undefined ? t("quotas.no_alert") : t("quotas.alert_at", { percent: percent(quota.alert_threshold_percent) }))),
    h("div", { class: "row-actions" },
      can("write_quotas") ? h("a", { class: "button", href: link(["quotas", quota.id, "edit"]) }, t("edit")) : null,
      can("delete_quotas") ? h("button", { type: "button", class: "danger", on: { click: drop } }, t("delete")) : null,
      h("a", { class: "button", href: link(["quotas"]) }, t("quotas.back"))));
}

function actions(quota, can, look) {
  const reset = async () => {
    const reason = reasonField();
    const done = await confirm({
      title: t("quotas.reset"), text: t("quotas.reset_text", { name: quota.name }), body: reason.element, yes: t("reset"), danger: true,
      act: () => post(at(quota.id, "usage", "reset"), { reason: reason.input.value }),
    });
    if (done) {
      announce(t("quotas.was_reset"));
      await look();
    }
  };
  return h("div", { class: "quota-actions" }, can("use_quotas") ? increment(quota, look) : null,
    can("reset_quotas") ? h("button", { type: "button", class: "danger", on: { click: reset } }, t("quotas.reset")) : null);
}

function increment(quota, look) {
  const amount = h("input", { type: "number", min: 1, step: 1, value: 1, inputmode: "numeric" });
  const result = h("div", { role: "status" });
  const form = h("form", { class: "inline", novalidate: true }, field("amount", t("quotas.amount"), amount), h("button", { type: "submit" }, t("quotas.increment")), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clear(form);
    try {
      // A request id prevents charging a repeated request twice.
      const done = await post(at(quota.id, "usage", "increment"), { amount: amount.value === "" ? null : Number(amount.value), request_id: crypto.randomUUID?.() ?? String(Math.random()) });
      result.replaceChildren(notice(t("quotas.incremented", { used: number(done.used), remaining: number(done.remaining) }), "info"));
    } catch (error) {
      complain(form, result, error.status === 429 ? Object.assign(error, { details: [] }) : error);
    }
    await look().catch(() => {});
  });
  return form;
}

let drawn = "";

function draw(place, history) {
  const text = JSON.stringify(history);
  if (place.firstChild && text === drawn) return;
  drawn = text;
  const bars = [...history].reverse().map((it) => ({
    name: it.period_name, value: it.used, most: it.limit,
    title: `${it.period_name}: ${number(it.used)} / ${number(it.limit)} (${percent(it.usage_percent)})`,
  }));
  place.replaceChildren(bars.length ? barChart({ label: t("quotas.history"), bars, yLabel: t("axis.units") }) : h("p", { class: "empty" }, t("quotas.no_history")));
}
