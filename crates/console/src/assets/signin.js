// Sign-in. The token is exchanged for an HttpOnly cookie and not stored.

import { post, signedIn } from "./api.js";
import { h } from "./dom.js";
import { complain, field, notice } from "./form.js";
import { t } from "./messages.js";

/** Shows the sign-in page; returns the session. */
export function signIn(app, session) {
  return new Promise((resolve) => {
    app.replaceChildren(h("main", { class: "sign-in", id: "main" },
      h("img", { src: "/console/assets/icon.svg", alt: "", width: 48, height: 48 }),
      h("h1", {}, "Headgate"), h("p", {}, t("sign.welcome")),
      location.search === "?sign_in=failed" ? notice(t("sign.failed")) : null, form(session, resolve)));
    app.querySelector("input")?.focus();
  });
}

let asking = false;

/** Shows a sign-in dialog over the page, so that unsaved input is kept. */
export function signInAgain(session, then) {
  if (asking) return;
  asking = true;
  const done = (now) => {
    // Another user may have another role: discard the page.
    if (now.actor !== session.actor || now.role !== session.role) return location.reload();
    asking = false;
    signedIn();
    dialog.close();
    dialog.remove();
    if (!document.querySelector("form[data-unsaved]")) then();
  };
  const dialog = h("dialog", { "aria-label": t("sign.in"), class: "sign-in-again" },
    h("h2", {}, t("sign.in")), notice(t("sign.ended"), "info"), form(session, done));
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
}

function form(session, done) {
  const input = h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const problem = h("div", { role: "alert" });
  const button = h("button", { class: "primary", type: "submit" }, t("sign.in"));
  const element = h("form", { novalidate: true }, field("token", t("sign.token"), input, t("sign.hint")), problem,
    h("div", { class: "actions" }, button,
      session.oidc ? h("a", { class: "button", href: "/console/oidc" }, t("sign.oidc")) : null));
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const now = await post("/console/session", { token: input.value });
      input.value = "";
      done(now);
    } catch (error) {
      problem.replaceChildren();
      complain(element, problem, error);
      input.focus();
    }
    button.disabled = false;
  });
  return element;
}
