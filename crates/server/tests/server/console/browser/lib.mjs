// A browser that fails on errors in its console, and on requests to other machines.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { join } from "node:path";
import readline from "node:readline";

const require = createRequire(join(process.env.HEADGATE_NODE_MODULES, "x.js"));
const { chromium } = require("playwright-core");
const axeSource = require("axe-core").source;

export const URL_BASE = process.env.HEADGATE_URL;
export const TOKENS = { admin: "admin-token-0123456789", operator: "operator-token-0123456789", auditor: "auditor-token-0123456789" };
export const WIDE = { width: 1440, height: 900 };
export const NARROW = { width: 360, height: 740 };

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  // No other host resolves.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];

/** Starts a browser, runs `story`, and fails if the browser recorded an error. */
export async function browse(story) {
  const browser = await chromium.launch({ executablePath: process.env.HEADGATE_CHROMIUM, args: FLAGS });
  const seen = { errors: [], elsewhere: [], refusals: [] };
  try {
    await story((options) => open(browser, seen, options));
  } finally {
    await browser.close();
  }
  for (const { status, reported, provoked } of seen.refusals.flatMap((it) => it())) {
    assert.ok(reported <= provoked, `${reported} answers were ${status}, where ${provoked} were wanted`);
  }
  assert.deepEqual(seen.elsewhere, [], "requests left this machine");
  assert.deepEqual(seen.errors, [], "errors in the browser's console");
}

/** A page with an empty browser profile. */
async function open(browser, seen, { viewport = WIDE, locale = "en-US", colorScheme = "light", timezoneId = "Asia/Tokyo", storageState } = {}) {
  // The authority of a server over TLS is not one of the browser's.
  const ignoreHTTPSErrors = URL_BASE.startsWith("https:");
  const context = await browser.newContext({ viewport, locale, colorScheme, timezoneId, storageState, ignoreHTTPSErrors });
  // A busy machine takes long for anything.
  context.setDefaultTimeout(90_000);
  context.on("request", (request) => {
    if (new URL(request.url()).hostname !== "127.0.0.1") seen.elsewhere.push(request.url());
  });
  const page = await context.newPage();
  page.tolerated = [];
  const reported = new Map();
  const provoked = new Map();
  const count = (numbers, status) => numbers.set(status, (numbers.get(status) ?? 0) + 1);
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("response", (response) => {
    if (page.tolerated.includes(response.status())) count(provoked, response.status());
  });
  page.on("console", (message) => {
    if (message.type() !== "error") return;
    const refusal = /^Failed to load resource: .* status of (\d+)/.exec(message.text());
    const isAway = /^Failed to load resource: net::ERR/.test(message.text());
    if (refusal) count(reported, Number(refusal[1]));
    else if (!isAway || !page.tolerated.includes("net::ERR")) seen.errors.push(message.text());
  });
  seen.refusals.push(() => [...reported].map(([status, times]) => ({ status, reported: times, provoked: provoked.get(status) ?? 0 })));
  return page;
}

/** Expects error responses from here on: browsers log them, sometimes late. */
export function tolerate(page, ...statuses) {
  page.tolerated.push(...statuses);
}

export async function signIn(page, role, hash = "") {
  await page.goto(`${URL_BASE}/console${hash}`);
  await page.getByLabel("Token").fill(TOKENS[role]);
  await page.keyboard.press("Enter");
  await page.locator("nav.pages").waitFor();
}

export async function visit(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
}

/** Sends a request with a token. */
export async function api(method, path, body, token = TOKENS.admin) {
  const answer = await fetch(URL_BASE + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, json: text ? JSON.parse(text) : null };
}

/** Checks a user. */
export async function check(identifier, scope = "user") {
  return (await api("POST", "/api/v1/ratelimit/check", { scope, identifier })).json.allowed;
}

/** Waits until `look` returns a value. */
export async function until(what, look) {
  for (let tries = 0; tries < 1800; tries += 1) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  assert.fail(`never came true: ${what}`);
}

/** Waits for the sign-in dialog, pressing `button` to trigger it if needed; then signs in again. */
export async function signInAgain(page, role, button) {
  const dialog = page.getByRole("dialog", { name: "Sign in" });
  await until("the page asks who this is", async () => {
    // The dialog may open meanwhile, and cover the button.
    if (button && !(await dialog.count())) await button.click({ timeout: 1000 }).catch(() => {});
    return dialog.count();
  });
  await dialog.getByText("Your session has expired.").waitFor();
  await dialog.getByLabel("Token").fill(TOKENS[role]);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
}

/** Serious findings of axe. */
export async function accessible(page, where) {
  await page.evaluate(axeSource);
  const { passes, violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  assert.ok(passes.length > 10, `axe looked at little: ${where}`);
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]), [], where);
}

export async function fitsItsWidth(page, where) {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(beyond, 0, `${where} is wider than the window`);
}

const replies = readline.createInterface({ input: process.stdin });

/** Sends an order to the test that runs this script, and waits until it is done. */
export async function order(what) {
  process.stdout.write(`@${what}\n`);
  await once(replies, "line");
}

/** Runs the story of one file. */
export function run(story) {
  browse(story).then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
}

export { assert };
