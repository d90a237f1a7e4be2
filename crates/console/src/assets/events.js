// Quota events and their deliveries.

import { get, watch, withQuery } from "./api.js";
import { h } from "./dom.js";
import { field, select } from "./form.js";
import { number, time } from "./format.js";
import { t } from "./messages.js";
import { link } from "./router.js";
import { badge, table } from "./table.js";

const KINDS = ["QUOTA_EXCEEDED", "QUOTA_THRESHOLD_REACHED"];

/** Maximum number of events before the list is reloaded from the newest. */
const MOST = 1000;

export const title = () => t("page.events");

export async function render(content, { signal }) {
  const kind = select([["", t("any")], ...KINDS.map((name) => [name, t(`event.${name}`)])], "");
  const list = h("div", {});
  const more = h("button", { type: "button", hidden: true }, t("events.older"));
  // Newest first. It grows only at its ends, so that no event is missed in between.
  let known = [];
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
    if (known.length > MOST) {
      known = [];
      delete more.dataset.before;
    }
    more.hidden = known.length === 0 && newest.events.length < 50;
    more.dataset.before ||= newest.next;
    known = [...newest.events, ...without(known, newest.events)];
    show(known);
  };
  more.addEventListener("click", async () => {
    const next = await page(more.dataset.before);
    known = [...known, ...without(next.events, known)];
    more.dataset.before = next.next;
    more.disabled = next.events.length === 0;
    await look();
  });
  kind.addEventListener("change", () => { known = []; delete more.dataset.before; more.disabled = false; look(); });
  content.append(h("p", { class: "hint" }, t("events.hint")), h("form", { class: "filters", on: { submit: (event) => event.preventDefault() } }, field("event_type", t("events.kind"), kind)), list, more);
  await watch(look, 2000, signal);
}

/** Returns the events that are not in `others`. */
function without(events, others) {
  const ids = new Set(others.map((it) => it.event_id));
  return events.filter((it) => !ids.has(it.event_id));
}

/** The table of events with their deliveries. */
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
  if (!all.length) return h("span", { class: "none" }, t("events.no_sink"));
  return h("ul", { class: "deliveries" }, all.map((it) => h("li", {},
    badge(t(it.delivered ? "events.delivered" : "events.waiting"), it.delivered ? "good" : "warn"), " ",
    h("span", { class: "long" }, it.sink), it.delivered_at ? [" ", time(it.delivered_at)] : "")));
}
