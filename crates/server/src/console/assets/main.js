// The console: finds out who is there, and shows the page that the address names.

import { get, when } from "./api.js";
import { h } from "./dom.js";
import { notice, said } from "./form.js";
import { t, language } from "./messages.js";
import { place } from "./router.js";
import { shell } from "./shell.js";
import { signIn, signInAgain } from "./signin.js";
import * as overview from "./overview.js";
import * as rules from "./rules.js";
import * as rule from "./rule.js";
import * as explain from "./explain.js";
import * as quotas from "./quotas.js";
import * as quota from "./quota.js";
import * as quotaForm from "./quota_form.js";
import * as events from "./events.js";
import * as audit from "./audit.js";

/** Which page is at which path; the second part of a path may name a thing. */
function page([first, second, third]) {
  if (first === "rules") return second ? rule : rules;
  if (first === "quotas") return !second ? quotas : second === "new" || third === "edit" ? quotaForm : quota;
  return { explain, events, audit }[first] ?? overview;
}

let leave = new AbortController();

function show(session, frame) {
  leave.abort();
  leave = new AbortController();
  const { parts, parameters } = place();
  const shown = page(parts);
  const title = shown.title(parts);
  document.title = `${title} · Headgate`;
  frame.mark(parts[0]);
  const heading = h("h1", { tabindex: "-1" }, title);
  const content = h("div", {});
  frame.main.replaceChildren(heading, content);
  const context = { parts, parameters, session, signal: leave.signal, can: (action) => session.can.includes(action) };
  Promise.resolve(shown.render(content, context)).catch((error) => {
    if (!context.signal.aborted) content.append(notice(said(error)));
  });
  return heading;
}

async function start() {
  document.documentElement.lang = language;
  document.getElementById("skip").textContent = t("skip");
  const app = document.getElementById("app");
  let session = await get("/console/session");
  if (!session.signed_in) session = await signIn(app, session);
  const frame = shell(session);
  app.replaceChildren(frame.element);
  window.addEventListener("hashchange", () => {
    if (location.hash === "#main") return;
    show(session, frame).focus();
  });
  when("signedOut", () => signInAgain(session, () => show(session, frame)));
  when("back", () => { get("/console/session").then((now) => now.signed_in || signInAgain(session, () => show(session, frame))); });
  show(session, frame);
}

start().catch(() => {
  // The server is not there yet: nothing was shown, so nothing is lost by beginning again.
  const app = document.getElementById("app");
  app.replaceChildren(h("main", { class: "sign-in", id: "main" }, h("h1", {}, "Headgate"), h("p", { role: "alert" }, t("away.text"))));
  setTimeout(() => location.reload(), 2000);
});
