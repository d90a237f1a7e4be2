// Every page at two widths, in light and dark, in two languages: accessible, small, fast.

import { mkdir } from "node:fs/promises";
import { join } from "node:path";

import { NARROW, URL_BASE, WIDE, accessible, api, assert, check, fitsItsWidth, run, signIn, until, visit } from "./lib.mjs";

const SHOTS = process.env.HEADGATE_SCREENSHOTS;
const RULES = "/api/v1/ratelimit/rules";

run(async (open) => {
  await mkdir(SHOTS, { recursive: true });
  const pages = await furnish();
  const stop = traffic();
  const state = await everyPage(open, pages);
  await stop();
  await itIsSmallAndQuick(open, state);
  await theKeyboardIsEnough(await open({ storageState: state }));
  await timesAreTheReaders(await open({ storageState: state, timezoneId: "America/New_York" }), pages.rules);
  await itSpeaksJapanese(await open({ storageState: state, locale: "ja-JP" }));
});

/** Traffic in the background. */
function traffic() {
  let goOn = true;
  const done = (async () => {
    for (let i = 0; goOn; i += 1) {
      await Promise.all([check(`paid-${i % 7}`), check("free-anna"), i % 3 ? check("paid-cleo") : check("free-bert")]);
      await new Promise((resolve) => { setTimeout(resolve, 40); });
    }
  })();
  return () => { goOn = false; return done; };
}

/** Sample data. */
async function furnish() {
  const rules = [
    { name: "Free plan", scope: "user", identifier_pattern: "free-*", limit: 5, window_seconds: 3600 },
    { name: "Paid plan", scope: "user", identifier_pattern: "paid-*", limit: 1200, window_seconds: 60, burst: 200 },
    { name: "Search", scope: "endpoint", identifier_pattern: "/api/search", limit: 50, window_seconds: 1, algorithm: "sliding_window_counter" },
    { name: "Billing", scope: "service", identifier_pattern: "billing", limit: 20_000, window_seconds: 3600, algorithm: "fixed_window", fail_mode: "closed" },
    { name: "Old partner", scope: "service", identifier_pattern: "partner-*", limit: 10, window_seconds: 86_400, enabled: false },
  ];
  const made = [];
  for (const rule of rules) made.push((await api("POST", RULES, rule)).json);
  const quotas = [["Standard plan", "acme", 1000, "monthly", 820], ["Trial plan", "hooli", 100, "daily", 100], ["Enterprise plan", "initech", 1_000_000, "monthly", 123_456]];
  let trial;
  for (const [name, subject_id, limit, period, amount] of quotas) {
    const { json } = await api("POST", "/api/v1/quotas", { name, subject_type: "tenant", subject_id, limit, period, alert_threshold_percent: 80 });
    await api("POST", `/api/v1/quotas/${json.id}/usage/increment`, { amount });
    if (amount === limit) trial = json.id;
  }
  await api("PUT", "/api/v1/services/relay", { config: { rate_limit: { ws: { events_per_minute: 240 } } } });
  for (let i = 0; i < 40; i += 1) await check(["free-anna", "free-anna", "free-bert", "paid-cleo"][i % 4]);
  await api("POST", "/api/v1/ratelimit/reset", { scope: "user", identifier: "free-bert", reason: "Asked by support" });
  return {
    overview: "#/overview", rules: "#/rules", rule: `#/rules/${made[1].id}`, "rule-new": "#/rules/new",
    explain: "#/explain?scope=user&identifier=free-anna", quotas: "#/quotas", quota: `#/quotas/${trial}`, "quota-edit": `#/quotas/${trial}/edit`,
    services: "#/services", service: "#/services/relay", events: "#/events", audit: "#/audit",
  };
}

const READY = {
  overview: ".tile-value", rules: "table.list", rule: ".preview-words li", "rule-new": ".preview-words li", explain: "li.applies .meter", quotas: ".meter",
  quota: ".chart .bar", "quota-edit": "form.editor", services: "table.list", service: "ol.audit", events: "table.list", audit: "ol.audit",
};

async function everyPage(open, pages) {
  let state;
  for (const [viewport, colorScheme] of [[WIDE, "light"], [WIDE, "dark"], [NARROW, "light"], [NARROW, "dark"]]) {
    const page = await open({ viewport, colorScheme });
    await page.goto(`${URL_BASE}/console`);
    await page.getByLabel("Token").waitFor();
    await accessible(page, "sign in");
    await shot(page, "sign-in", viewport, colorScheme);
    await signIn(page, "admin");
    // The live charts have data.
    await page.waitForFunction(() => document.querySelectorAll(".chart path.line.admitted")[0]?.getAttribute("d").split("L").length > 8);
    for (const [name, hash] of Object.entries(pages)) {
      await visit(page, hash);
      await page.locator(READY[name]).first().waitFor();
      if (name === "audit") await page.locator("summary").first().click();
      if (name === "rule") await page.getByLabel("Limit").fill("1500");
      await accessible(page, `${name}, ${viewport.width}, ${colorScheme}`);
      await fitsItsWidth(page, name);
      await shot(page, name, viewport, colorScheme);
    }
    state = await page.context().storageState();
  }
  return state;
}

async function shot(page, name, viewport, colorScheme) {
  await page.screenshot({ path: join(SHOTS, `${name}-${viewport.width}-${colorScheme}.png`), fullPage: true });
}

async function itIsSmallAndQuick(open, storageState) {
  const page = await open({ storageState });
  const bodies = [];
  page.on("response", (response) => bodies.push(response.body().then((body) => body.length, () => 0)));
  // Time on the processor, which does not depend on how busy the machine is.
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Performance.enable", { timeDomain: "threadTicks" });
  const began = performance.now();
  await page.goto(`${URL_BASE}/console`);
  await page.locator(".tile-value", { hasText: /\d/ }).first().waitFor();
  const waited = performance.now() - began;
  const { metrics } = await devTools.send("Performance.getMetrics");
  const worked = metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  console.log(`cold start: ${Math.round(waited)} ms, ${Math.round(worked)} ms on the processor`);
  assert.ok(worked > 0 && worked < 1000, `the page took ${worked} ms on the processor`);
  const bytes = (await Promise.all(bodies)).reduce((sum, length) => sum + length, 0);
  assert.ok(bytes > 50_000 && bytes < 200_000, `${bytes} bytes`);
  await page.context().close();
}

async function theKeyboardIsEnough(page) {
  await page.goto(`${URL_BASE}/console`);
  await page.locator(".tile-value").first().waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.getByRole("link", { name: "Rules", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Rules" }).waitFor();
  await until("the heading has the focus", () => page.evaluate(() => document.activeElement.tagName === "H1"));
  const drop = page.getByRole("button", { name: "Delete Free plan" });
  await drop.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until("the focus is back", () => page.evaluate(() => document.activeElement.getAttribute("aria-label") === "Delete Free plan"));
  await visit(page, "#/rules/new");
  await page.getByText("At once: 100 requests.").waitFor();
  await page.locator(".chart-plot").focus();
  await page.keyboard.press("ArrowLeft");
  await page.locator(".chart-tip", { hasText: "Burst: as many as possible" }).waitFor();
}

async function timesAreTheReaders(page, hash) {
  await page.goto(`${URL_BASE}/console${hash}`);
  const time = page.locator("table time").first();
  const [shown, title, at] = [await time.innerText(), await time.getAttribute("title"), await time.getAttribute("datetime")];
  const there = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeStyle: "medium", timeZone: "America/New_York" });
  assert.equal(shown, there.format(new Date(at)));
  assert.equal(title, `${at.replace("T", " ").replace("Z", "")} UTC`);
}

async function itSpeaksJapanese(page) {
  await page.goto(`${URL_BASE}/console`);
  await page.getByRole("link", { name: "ルール", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "ja");
  await page.locator(".tile-value").first().waitFor();
  await shot(page, "overview-ja", WIDE, "light");
  await page.getByLabel("言語").selectOption("en");
  await page.getByRole("link", { name: "Rules", exact: true }).waitFor();
  await page.getByLabel("Language").selectOption("ja");
  await page.getByRole("link", { name: "クォータ", exact: true }).waitFor();
}
