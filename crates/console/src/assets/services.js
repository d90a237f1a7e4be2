// Services that embed the guard: their documents, and what each instance runs on.

import { get, watch } from "./api.js";
import { h } from "./dom.js";
import { number, time } from "./format.js";
import { t } from "./messages.js";
import { link } from "./router.js";
import { badge, table } from "./table.js";

export const SERVICES = "/api/v1/services";

export const title = () => t("page.services");

export async function render(content, { signal, can }) {
  const [documents, instances] = [h("div", { class: "cards" }), h("div", {})];
  content.append(h("p", { class: "hint" }, t("services.hint")), documents, h("h2", {}, t("services.instances")), instances);
  let shown = "";
  await watch(async () => {
    const seen = await get(SERVICES, { signal });
    const text = JSON.stringify(seen);
    if (text === shown) return;
    shown = text;
    const cards = seen.services.map((it) => card(it, seen.instances, can));
    documents.replaceChildren(...(cards.length ? cards : [h("p", { class: "empty" }, t("services.no_services"))]));
    instances.replaceChildren(running(seen));
  }, 3000, signal);
}

function card(it, instances, can) {
  const own = instances.filter((instance) => instance.service === it.service);
  const late = own.filter((instance) => instance.version !== it.version).length;
  return h("div", { class: "card" }, h("h3", {}, it.service),
    h("div", { class: "card-value" }, it.version ? t("services.version", { version: number(it.version) }) : t("services.defaults")),
    h("p", { class: "card-more" }, it.updated_at ? [it.updated_by, " · ", time(it.updated_at)] : t("services.no_document")),
    h("p", {}, own.length ? badge(late ? t("services.late", { late: number(late), all: number(own.length) }) : t("services.all", { all: number(own.length) }), late ? "warn" : "good") : h("span", { class: "none" }, t("services.none"))),
    h("a", { class: "button", href: link(["services", it.service]), "aria-label": `${t(can("write_services") ? "edit" : "view")} ${it.service}` }, t(can("write_services") ? "edit" : "view")));
}

function running({ services, instances }) {
  const wanted = Object.fromEntries(services.map((it) => [it.service, it.version]));
  const rows = instances.map((it) => [
    it.service,
    h("code", { class: "long" }, it.instance),
    [it.version === undefined ? t("services.safe") : number(it.version), " ", badge(t(it.version === wanted[it.service] ? "services.current" : "services.behind"), it.version === wanted[it.service] ? "good" : "warn")],
    t(`source.${it.source}`),
    time(it.seen_at, { near: true }),
  ]);
  return table(t("services.instances"), [t("services.service"), t("services.instance"), t("services.running"), t("services.source"), t("services.seen")], rows, t("services.no_instances"));
}
