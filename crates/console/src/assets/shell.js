// The frame of every page: navigation, user and connection state.

import { leaving, remove, when } from "./api.js";
import { announce, h } from "./dom.js";
import { LANGUAGES, language, speak, t } from "./messages.js";
import { select } from "./form.js";
import { link } from "./router.js";

const PAGES = [
  ["overview", "watch"],
  ["rules", "read_rules"],
  ["explain", "explain"],
  ["quotas", "read_quotas"],
  ["services", "read_services"],
  ["events", "read_events"],
  ["audit", "read_audit"],
];

/** The frame: pages are rendered into `main`, and `mark` highlights the current one. */
export function shell(session) {
  const links = PAGES.filter(([, action]) => session.can.includes(action)).map(([name]) =>
    h("a", { href: link([name]), "data-page": name }, t(`page.${name}`)));
  const main = h("main", { id: "main", tabindex: "-1" });
  const away = h("div", { class: "away", role: "alert", hidden: true }, t("away.text"));
  when("away", () => { away.hidden = false; });
  when("back", () => { away.hidden = true; announce(t("away.back")); });
  const element = h("div", { class: "frame" },
    h("header", { class: "top" },
      h("a", { class: "brand", href: link(["overview"]) }, h("img", { src: "/console/assets/icon.svg", alt: "", width: 24, height: 24 }), "Headgate"),
      h("span", { class: "environment" }, `${session.server} · ${session.environment}`),
      h("div", { class: "who" }, who(session), languages())),
    h("nav", { class: "pages", "aria-label": t("navigation") }, links),
    h("div", { class: "content" }, away, main,
      h("footer", {}, `Headgate ${session.version}`, " · ", h("a", { href: "/api-docs" }, "API"))));
  return {
    element,
    main,
    mark(page) {
      for (const it of links) {
        if (it.dataset.page === page) it.setAttribute("aria-current", "page");
        else it.removeAttribute("aria-current");
      }
    },
  };
}

function who(session) {
  const leave = async () => {
    leaving();
    await remove("/console/session");
    location.hash = "";
    location.reload();
  };
  return [
    h("span", { class: "actor", title: session.role }, session.actor, h("small", {}, t(`role.${session.role}`))),
    session.can_sign_out ? h("button", { type: "button", on: { click: leave } }, t("sign.out")) : null,
  ];
}

function languages() {
  const choice = select(Object.entries(LANGUAGES), language, { "aria-label": t("language") });
  choice.addEventListener("change", () => speak(choice.value));
  return choice;
}
