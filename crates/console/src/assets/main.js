// The console: checks the session and shows the page of the current address.

import { get, watch, when } from "./api.js";
import { h } from "./dom.js";
import { notice, said } from "./form.js";
import { t, language } from "./messages.js";
import { place } from "./router.js";
import { shell } from "./shell.js";
import { signIn, signInAgain } from "./signin.js";

/** Pages by path, loaded on demand; the second segment of a path may be an id. */
function page([first, second, third]) {
  if (first === "rules") return second ? import("./rule.js") : import("./rules.js");
  if (first === "quotas") return !second ? import("./quotas.js") : second === "new" || third === "edit" ? import("./quota_form.js") : import("./quota.js");
  if (first === "services") return second ? import("./service.js") : import("./services.js");
  if (first === "explain") return import("./explain.js");
  if (first === "events") return import("./events.js");
  if (first === "audit") return import("./audit.js");
  return import("./overview.js");
}

let leave = new AbortController();

async function show(session, frame) {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const { parts, parameters } = place();
  const shown = await page(parts);
  // The user may have navigated away in the meantime.
  if (signal.aborted) return null;
  const title = shown.title(parts);
  document.title = `${title} · Headgate`;
  frame.mark(parts[0]);
  const heading = h("h1", { tabindex: "-1" }, title);
  const content = h("div", {});
  frame.main.replaceChildren(heading, content);
  const context = { parts, parameters, session, signal, can: (action) => session.can.includes(action) };
  Promise.resolve(shown.render(content, context)).catch((error) => {
    if (!signal.aborted) content.append(notice(said(error)));
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
  window.addEventListener("hashchange", async () => {
    if (location.hash === "#main") return;
    try {
      const heading = await show(session, frame);
      heading?.focus();
    } catch {
      // A failed script import is cached by the browser, so that only a reload helps.
      beginAgain();
    }
  });
  when("signedOut", () => signInAgain(session, () => show(session, frame)));
  when("back", () => { get("/console/session").then((now) => now.signed_in || signInAgain(session, () => show(session, frame))); });
  await show(session, frame);
  setTimeout(() => Promise.allSettled(PAGES.map(page)), 500);
}

// Preload all pages, so that they work while the server is unreachable.
const PAGES = [["rules"], ["rules", "new"], ["explain"], ["quotas"], ["quotas", "new"], ["quotas", "one"], ["services"], ["services", "one"], ["events"], ["audit"]];

/** Reloads the console as soon as the server responds. */
function beginAgain() {
  watch(async () => {
    await get("/console/session");
    location.reload();
  }, 1000, new AbortController().signal);
}

start().catch(() => {
  // The server is unreachable. Nothing was shown yet, so that a reload loses nothing.
  const app = document.getElementById("app");
  app.replaceChildren(h("main", { class: "sign-in", id: "main" }, h("h1", {}, "Headgate"), h("p", { role: "alert" }, t("away.text"))));
  beginAgain();
});
