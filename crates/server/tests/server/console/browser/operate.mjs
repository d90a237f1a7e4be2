// An operator's day: a rule is created, used, changed despite a conflict, explained, reset and deleted; a
// quota is used up, with its event.

import { TOKENS, api, assert, check, fitsItsWidth, run, signIn, tolerate, until, visit, NARROW, URL_BASE } from "./lib.mjs";

const SCRIPT = "<script>window.hacked = true</script>";

run(async (open) => {
  const page = await open();
  await aWrongTokenOpensNothing(page);
  await aRuleIsMade(page);
  await itLimitsRealTraffic(page);
  await aConflictIsShownAsADifference(page, await open());
  await aRuleLikeAnotherIsShownBesideIt(page);
  await aSubjectIsExplainedAndReset(page);
  await aStuckLeaseIsEnded(page);
  await textIsText(page);
  await whateverTheServerSaysIsText(await open({ viewport: NARROW }));
  await aQuotaIsUsedUp(page);
  await aServicesDocumentIsChanged(page);
  await aRuleIsDeleted(page);
  await leavingEndsTheSession(page);
});

async function aWrongTokenOpensNothing(page) {
  tolerate(page, 401);
  await page.goto(`${URL_BASE}/console`);
  await page.getByLabel("Token").fill("no-such-token-0123456789");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("unknown token").waitFor();
  page.tolerated.length = 0;
  await signIn(page, "admin");
  const cookies = await page.context().cookies();
  assert.equal(cookies.length, 1);
  assert.deepEqual([cookies[0].httpOnly, cookies[0].sameSite], [true, "Strict"]);
  assert.equal(await page.evaluate(() => document.cookie), "");
}

async function aRuleIsMade(page) {
  await page.getByRole("link", { name: "Rules", exact: true }).click();
  await page.getByRole("link", { name: "New rule" }).click();
  tolerate(page, 400);
  await page.getByLabel("Limit").fill("0");
  await page.getByRole("button", { name: "Create" }).click();
  await page.locator("[data-field=identifier_pattern]", { hasText: "identifier_pattern is required" }).waitFor();
  await page.locator("[data-field=limit]", { hasText: "limit must be greater than 0" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-invalid")), "true");
  page.tolerated.length = 0;
  await page.getByLabel("Name").fill("Shops");
  await page.getByLabel("Identifier pattern").fill("shop-*");
  await page.getByLabel("Limit").fill("3");
  await page.getByLabel("Window (seconds)").fill("86400");
  await page.getByText("At once: 3 requests.").waitFor();
  await page.getByText("At most 9 in the first 2 d.").waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("link", { name: "Shops", exact: true }).waitFor();
}

async function itLimitsRealTraffic(page) {
  const admitted = [];
  for (let i = 0; i < 10; i += 1) admitted.push(await check("shop-1"));
  assert.deepEqual(admitted, [true, true, true, ...Array(7).fill(false)]);
  await visit(page, "#/overview");
  const row = page.getByRole("row", { name: /user:shop-1/ });
  await row.getByText("Shops").waitFor();
  await until("seven denials are counted", async () => /\b7\b/.test(await row.innerText()));
  // Also live.
  let goOn = true;
  const traffic = (async () => { while (goOn) await check("shop-1"); })();
  await until("denials are seen live", async () => !/\n0/.test(await page.locator(".tile.denied").innerText()));
  goOn = false;
  await traffic;
  await page.locator(".chart-plot").first().hover();
  await page.locator(".chart-tip", { hasText: "Denied" }).waitFor();
}

async function aConflictIsShownAsADifference(page, other) {
  await signIn(other, "operator", "#/rules");
  for (const it of [page, other]) {
    await visit(it, "#/rules");
    await it.getByRole("link", { name: "Shops", exact: true }).click();
    await it.getByLabel("Limit").waitFor();
  }
  await other.getByLabel("Limit").fill("5");
  await other.getByRole("row", { name: /Limit 3 5/ }).waitFor();
  await other.getByRole("button", { name: "Save" }).click();
  await other.getByText("5 per 1").waitFor();
  tolerate(page, 412);
  await page.getByLabel("Limit").fill("7");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("This rule has changed").waitFor();
  await page.getByRole("row", { name: /Limit 3 5 7/ }).waitFor();
  const { json } = await api("GET", "/api/v1/ratelimit/rules?search=shops");
  assert.equal(json.rules[0].limit, 5, "nothing was overwritten");
  await page.getByRole("button", { name: "Keep mine" }).click();
  await page.getByRole("row", { name: /Limit 5 7/ }).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("7 per 1").waitFor();
  page.tolerated.length = 0;
}

async function aRuleLikeAnotherIsShownBesideIt(page) {
  tolerate(page, 409);
  await visit(page, "#/rules/new");
  await page.getByLabel("Identifier pattern").fill("shop-*");
  await page.getByLabel("Limit").fill("99");
  await page.getByLabel("Window (seconds)").fill("86400");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("row", { name: /Limit 7 99/ }).waitFor();
  await page.getByRole("link", { name: "Open existing rule" }).waitFor();
  page.tolerated.length = 0;
}

async function aSubjectIsExplainedAndReset(page) {
  await visit(page, "#/explain");
  await page.getByLabel("Identifier").fill("shop-1");
  await page.getByRole("button", { name: "Explain" }).click();
  const decides = page.locator("li.applies");
  await decides.getByRole("link", { name: "Shops" }).waitFor();
  await decides.getByText(/[1-9]\d* used/).waitFor();
  await page.getByRole("button", { name: "Reset counters" }).click();
  await page.getByLabel("Reason").fill(`${SCRIPT} asked by support`);
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await page.locator("li.applies").getByText(/0 used, 7 left|No usage/).waitFor();
  assert.equal(await check("shop-1"), true);
  await visit(page, "#/audit?action=counter.reset");
  await page.locator("summary", { hasText: "user:shop-1" }).click();
  await page.getByText(`${SCRIPT} asked by support`).waitFor();
  await page.locator("summary", { hasText: "root" }).waitFor();
  await page.getByLabel("Actor").fill("nobody");
  await page.getByText("No matching entries.").waitFor();
  await page.getByLabel("Actor").fill("ops");
  await page.getByLabel("Action").selectOption("rule.update");
  await page.locator("summary", { hasText: "changed rule" }).click();
  await page.getByRole("row", { name: /Limit 3 5/ }).waitFor();
  await page.getByLabel("Until").fill("2001-01-01T00:00");
  await page.getByText("No matching entries.").waitFor();
}

/** Markup is shown as text; a value that is too long is an error at its field. */
async function aStuckLeaseIsEnded(page) {
  const rule = { scope: "service", identifier_pattern: "export", limit: 2, window_seconds: 3600, algorithm: "concurrency" };
  await api("POST", "/api/v1/ratelimit/rules", rule);
  const checks = [{ scope: "service", identifier: "export" }];
  const { json: lease } = await api("POST", "/api/v1/ratelimit/acquire", { checks, lease_seconds: 3600 });
  await visit(page, "#/explain?scope=service&identifier=export");
  const rows = page.locator("li.applies");
  await rows.getByText("1 of 2 places taken, holders: 1").waitFor();
  await rows.getByText(lease.lease_id.slice("lease_".length).slice(0, 10), { exact: true }).waitFor();
  await rows.getByText(/in (1 hour|\d+ minutes)/).waitFor();
  await rows.getByRole("button", { name: "End lease" }).click();
  await page.getByLabel("Reason").fill("its host died");
  await page.getByRole("dialog").getByRole("button", { name: "End lease" }).click();
  await rows.getByText("No place is taken.").waitFor();
  await visit(page, "#/audit?action=lease.end");
  await page.locator("summary", { hasText: "service:export" }).click();
  await page.getByText("its host died").waitFor();
}

async function textIsText(page) {
  tolerate(page, 400);
  const long = "x".repeat(10_000);
  await visit(page, "#/rules/new");
  await page.getByLabel("Name").fill(long);
  await page.getByLabel("Identifier pattern").fill(long);
  await page.getByRole("button", { name: "Create" }).click();
  await page.locator("[data-field=name]", { hasText: "255" }).waitFor();
  await page.locator("[data-field=identifier_pattern]", { hasText: "255" }).waitFor();
  await page.getByLabel("Name").fill(SCRIPT.padEnd(255, "y"));
  await page.getByLabel("Identifier pattern").fill("<img src=x onerror=window.hacked=1>");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("link", { name: SCRIPT }).first().waitFor();
  await page.getByText("user:<img src=x onerror=window.hacked=1>").first().waitFor();
  await visit(page, `#/explain?scope=user&identifier=${encodeURIComponent(long)}`);
  await page.locator("[data-field=identifier]", { hasText: "512" }).waitFor();
  await visit(page, `#/explain?scope=user&identifier=${encodeURIComponent("<img src=x onerror=window.hacked=1>")}`);
  await page.getByRole("heading", { name: "user:<img src=x onerror=window.hacked=1>" }).waitFor();
  await page.getByRole("button", { name: "Reset counters" }).click();
  await page.getByLabel("Reason").fill(long);
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await page.locator("[data-field=reason]", { hasText: "1000 characters" }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  page.tolerated.length = 0;
}

/** Even if the API returned something unexpected. */
async function whateverTheServerSaysIsText(page) {
  const long = SCRIPT + "z".repeat(10_000);
  await page.route("**/api/v1/ratelimit/rules?*", async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    Object.assign(json.rules[0], { name: long, identifier_pattern: long });
    await route.fulfill({ response: answer, json });
  });
  await page.route("**/api/v1/ratelimit/audit?*", async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    Object.assign(json.entries[0], { actor: long, target: long, reason: long, after: { [long]: long } });
    await route.fulfill({ response: answer, json });
  });
  await signIn(page, "admin", "#/rules");
  await page.getByRole("link", { name: long }).first().waitFor();
  await fitsItsWidth(page, "rules with a name of 10 kB");
  await visit(page, "#/audit");
  await page.locator("summary").first().click();
  await page.locator("q", { hasText: long }).waitFor();
  await fitsItsWidth(page, "an audit entry of 10 kB");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
}

async function aQuotaIsUsedUp(page) {
  await visit(page, "#/quotas/new");
  await page.getByLabel("Name").fill("Trial");
  await page.getByLabel("Subject id").fill("<b>globex</b>");
  await page.getByLabel("Limit").fill("10");
  await page.getByLabel("Alert at").fill("50");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByLabel("Amount").fill("6");
  await page.getByRole("button", { name: "Increment" }).click();
  await page.getByText("6 used, 4 left.").waitFor();
  await page.getByText("Threshold reached").first().waitFor();
  tolerate(page, 429);
  await page.getByLabel("Amount").fill("5");
  await page.getByRole("button", { name: "Increment" }).click();
  await page.locator("form .notice.error").waitFor();
  await standing(page, "6 / 10 (60 %)");
  await page.getByLabel("Amount").fill("4");
  await page.getByRole("button", { name: "Increment" }).click();
  await standing(page, "10 / 10 (100 %)");
  page.tolerated.length = 0;
  await visit(page, "#/events");
  const event = page.getByRole("row", { name: /Quota exceeded tenant:<b>globex<\/b>/ });
  await event.getByText("Delivered").waitFor();
  await event.getByRole("link").click();
  await page.getByRole("button", { name: "Reset usage" }).click();
  await page.getByLabel("Reason").fill("paid");
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await standing(page, "0 / 10 (0 %)");
  await visit(page, "#/quotas");
  await page.getByRole("meter", { name: "Used: Trial" }).waitFor();
}

/** The label below the bar, not the tooltip of the chart. */
async function standing(page, words) {
  await page.locator(".standing span", { hasText: words }).first().waitFor();
}

async function aServicesDocumentIsChanged(page) {
  const relay = (events_per_minute) => ({ rate_limit: { ws: { events_per_minute } } });
  await visit(page, "#/services");
  await page.getByRole("row", { name: /relay relay-one 1 / }).waitFor();
  await page.getByRole("row", { name: /relay relay-two safe defaults/ }).waitFor();
  await page.getByRole("link", { name: "Edit relay" }).click();
  const document = page.getByLabel("Document (JSON)");
  await document.fill(JSON.stringify(relay(240)));
  await page.getByRole("row", { name: "/rate_limit/ws/events_per_minute none 240" }).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved as version 1.").waitFor();
  tolerate(page, 400, 409);
  await document.fill('{"rate_limit": {"ws": {"events_per_minute": "many"}}, "surprise": 1}');
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".problems li", { hasText: "/surprise" }).waitFor();
  await page.locator(".problems li", { hasText: "/rate_limit/ws/events_per_minute" }).waitFor();
  await api("PUT", "/api/v1/services/relay", { config: relay(100), expected_version: 1 });
  await document.fill(JSON.stringify(relay(300)));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: "/rate_limit/ws/events_per_minute 240 100 300" }).waitFor();
  await page.getByRole("button", { name: "Take theirs" }).click();
  assert.deepEqual(JSON.parse(await document.inputValue()), relay(100));
  page.tolerated.length = 0;
}

async function aRuleIsDeleted(page) {
  await visit(page, "#/rules");
  await page.getByLabel("Search").fill("SHOPS");
  await page.getByText("Page 1 of 1 · 1 in total").waitFor();
  await page.getByRole("button", { name: "Delete Shops" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Delete Shops" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No matching rules.").waitFor();
  const { json } = await api("GET", "/api/v1/ratelimit/rules?search=shops");
  assert.equal(json.pagination.total_count, 0);
}

async function leavingEndsTheSession(page) {
  const [cookie] = await page.context().cookies();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  const headers = { cookie: `${cookie.name}=${cookie.value}`, "x-headgate-console": "1" };
  const answer = await fetch(`${URL_BASE}/api/v1/ratelimit/rules`, { headers });
  assert.equal(answer.status, 401);
  assert.equal((await answer.json()).error.code, "SYS_AUTH_SESSION_ENDED");
  assert.ok(TOKENS.admin);
}
