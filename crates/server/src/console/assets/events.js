// What happened to quotas, and who was told.

import { get, watch, withQuery } from "./api.js";
import { h } from "./dom.js";
import { field, select } from "./form.js";
import { number, time } from "./format.js";
import { t } from "./messages.js";
import { link } from "./router.js";
import { badge, table } from "./table.js";

const KINDS = ["QUOTA_EXCEEDED", "QUOTA_THRESHOLD_REACHED"];

export const title = () => t("page.events");

export async function render(content, { signal }) {
  const kind = select([["", t("any")], ...KINDS.map((name) => [name, t(`event.${name}`)])], "");
  const list = h("div", {});
  const more = h("button", { type: "button", hidden: true }, t("events.older"));
  let older = [];
  let shownText = "";
  const page = (before) => get(withQuery("/api/v1/events", { order: "newest", before, event_type: kind.value, deliveries: "true", limit: 50 }), { signal });
  const show = (events) => {
    const text = JSON.stringify(events);
    if (text === shownText && list.firstChild) return;
    shownText = text;
    list.replaceChildren(eventTable(events));
  };
  const look = async () => {
    const newest = await page();
    more.hidden = newest.events.length < 50;
    more.dataset.before ||= newest.next;
    show([...newest.events, ...older.filter((it) => !newest.events.some((one) => one.event_id === it.event_id))]);
  };
  more.addEventListener("click", async () => {
    const next = await page(more.dataset.before);
    older = [...older, ...next.events];
    more.dataset.before = next.next;
    more.disabled = next.events.length === 0;
    await look();
  });
  kind.addEventListener("change", () => { older = []; delete more.dataset.before; more.disabled = false; look(); });
  content.append(h("p", { class: "hint" }, t("events.hint")), h("form", { class: "filters", on: { submit: (event) => event.preventDefault() } }, field("event_type", t("events.kind"), kind)), list, more);
  await watch(look, 2000, signal);
}

/** Events with who has them. */
export function eventTable(events) {
  const rows = events.map((it) => [
    badge(t(`event.${it.event_type}`), it.event_type === "QUOTA_EXCEEDED" ? "bad" : "warn"),
    h("a", { href: link(["quotas", it.quota_id]), class: "long" }, `${it.subject_type}:${it.subject_id}`),
    `${number(it.used)} / ${number(it.limit)}`,
    time(it.exceeded_at ?? it.reached_at),
    deliveries(it.deliveries ?? []),
  ]);
  return table(t("page.events"), [t("events.kind"), t("subject"), t("used"), t("events.at"), t("events.delivery")], rows, t("events.none"));
}

function deliveries(all) {
  if (!all.length) return h("span", { class: "none" }, t("events.nobody"));
  return h("ul", { class: "deliveries" }, all.map((it) => h("li", {},
    badge(t(it.delivered ? "events.delivered" : "events.waiting"), it.delivered ? "good" : "warn"), " ",
    h("span", { class: "long" }, it.sink), it.delivered_at ? [" ", time(it.delivered_at)] : "")));
}
