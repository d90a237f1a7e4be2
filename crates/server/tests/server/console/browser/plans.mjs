// A rule over attributes is built, tried on samples, limits traffic by plan; a subject is boosted, and an override is made.

import { accessible, api, assert, fitsItsWidth, run, signIn, tolerate, until, visit, NARROW } from "./lib.mjs";

run(async (open) => {
  const page = await open();
  await signIn(page, "operator", "#/rules/new-attributes");
  await aRuleIsBuilt(page);
  await itLimitsByPlan();
  await itIsShownAsItWasBuilt(page);
  await anOverrideIsMadeAndDeleted(page);
  await aSubjectIsBoostedWithOneClick(page);
  await conditionsThatTheBuilderDoesNotKnowAreKept(page);
});

const attributes = async (facts) => (await api("POST", "/api/v1/ratelimit/check", { attributes: facts, limits: true })).json;

async function aRuleIsBuilt(page) {
  // What is typed is tried meanwhile: an incomplete rule is refused.
  tolerate(page, 400);
  await page.getByLabel("Name").fill("api");
  await page.getByRole("button", { name: "Add a condition" }).click();
  await page.getByLabel("Attribute", { exact: true }).fill("path");
  await page.getByLabel("Operator").selectOption("prefix");
  await page.getByLabel("Value").fill("/v1/");
  await page.getByRole("button", { name: "Add a condition" }).click();
  await page.getByLabel("Attribute", { exact: true }).nth(1).fill("method");
  await page.getByLabel("Operator").nth(1).selectOption("one_of");
  await page.getByLabel("Value").nth(1).fill("POST, PUT");
  await page.getByLabel("Count per").fill("tenant");
  await page.getByLabel("Limit").fill("2");
  await page.getByLabel("Plan attribute").fill("plan");
  for (const [i, [plan, units]] of [["free", 3], ["pro", 30]].entries()) {
    await page.getByRole("button", { name: "Add a plan" }).click();
    await page.getByLabel("Plan", { exact: true }).nth(i).fill(plan);
    await page.getByLabel("Units of this plan").nth(i).fill(String(units));
  }
  await page.getByLabel("Window (seconds)").fill("86400");
  // Live, before anything is saved.
  await page.getByLabel("Sample attributes").fill("tenant=acme\nplan=pro\nmethod=GET\npath=/v1/x");
  await page.getByText("method does not fulfil the condition").waitFor();
  await page.getByLabel("Sample attributes").fill("tenant=acme\nplan=pro\nmethod=PUT\npath=/v1/x");
  await page.getByText("all conditions hold").waitFor();
  await page.getByText("30 for acme").waitFor();
  await page.getByText("the limit is 30 by the value of plan").waitFor();
  await page.getByLabel("Sample attributes").fill("tenant=acme\nmethod=PUT\npath=/v1/x");
  await page.getByText("the check has no attribute plan: it has the default limit, 2").waitFor();
  page.tolerated.length = 0;
  await accessible(page, "the rule builder");
  const wide = page.viewportSize();
  await page.setViewportSize(NARROW);
  await fitsItsWidth(page, "the rule builder");
  await page.setViewportSize(wide);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("link", { name: "api", exact: true }).waitFor();
  await page.getByText("default 2, free 3, pro 30 by plan").waitFor();
}

async function itLimitsByPlan() {
  const facts = { tenant: "acme", plan: "free", path: "/v1/x", method: "POST" };
  const seen = await attributes(facts);
  assert.deepEqual([seen.limit, seen.remaining, seen.rule.name], [3, 2, "api"]);
  assert.equal((await attributes({ ...facts, plan: "pro" })).limit, 30);
}

async function itIsShownAsItWasBuilt(page) {
  const { json } = await api("GET", "/api/v1/ratelimit/rules?search=api");
  assert.deepEqual(json.rules[0].when, { path: { prefix: "/v1/" }, method: ["POST", "PUT"] });
  assert.deepEqual(json.rules[0].limit, { by: "plan", free: 3, pro: 30, default: 2 });
  await page.getByRole("link", { name: "api", exact: true }).click();
  await page.getByText("No changes yet.").waitFor();
  assert.equal(await page.getByLabel("Value").first().inputValue(), "POST, PUT");
  assert.equal(await page.getByLabel("Plan attribute").inputValue(), "plan");
}

async function anOverrideIsMadeAndDeleted(page) {
  await page.getByRole("button", { name: "Add an override" }).click();
  const dialog = page.getByRole("dialog");
  tolerate(page, 400);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("limit is required").waitFor();
  page.tolerated.length = 0;
  await dialog.getByLabel("Subject").fill("tenant=acme");
  await dialog.getByLabel("Units per window").fill("5000");
  await dialog.getByLabel("Override until").fill("2999-01-01T00:00");
  await dialog.getByLabel("Reason").fill("launch");
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("row", { name: /tenant=acme 5,000 .* Active launch/ }).waitFor();
  const facts = { tenant: "acme", plan: "free", path: "/v1/x", method: "POST" };
  assert.equal((await attributes(facts)).limit, 5000);
  await page.getByRole("button", { name: "Delete tenant=acme" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No overrides.").waitFor();
  assert.equal((await attributes(facts)).limit, 3);
}

async function aSubjectIsBoostedWithOneClick(page) {
  const rule = { scope: "user", identifier_pattern: "u*", limit: 9, window_seconds: 86_400, name: "Users" };
  await api("POST", "/api/v1/ratelimit/rules", rule);
  await visit(page, "#/explain?scope=user&identifier=u1");
  await page.getByRole("button", { name: "Double for an hour" }).click();
  await page.getByText("an override of user=u1 sets the limit to 18").waitFor();
  await page.getByText("Override until").waitFor();
  const check = async () => (await api("POST", "/api/v1/ratelimit/check", { scope: "user", identifier: "u1", dry_run: true })).json.limit;
  assert.equal(await check(), 18);
  await page.getByRole("button", { name: "End the override" }).click();
  await page.getByRole("button", { name: "Double for an hour" }).waitFor();
  assert.equal(await check(), 9);
  await visit(page, "#/audit?action=override.set");
  await page.locator("summary", { hasText: "user=u1" }).first().click();
  await page.getByText("temporary boost").first().waitFor();
}

async function conditionsThatTheBuilderDoesNotKnowAreKept(page) {
  const when = { path: { prefix: "/v2/", not: ["/v2/a"] }, size: { min: 1, max: 9 }, user: { exists: false }, code: 5, host: ["a,b"] };
  const { json } = await api("POST", "/api/v1/ratelimit/rules", { name: "odd", when, per: [], limit: 5, window_seconds: 60 });
  await visit(page, `#/rules/${json.id}`);
  await page.getByText("No changes yet.").waitFor();
  await page.getByLabel("Limit").fill("6");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("link", { name: "odd", exact: true }).waitFor();
  await until("the rule has changed", async () => (await api("GET", `/api/v1/ratelimit/rules/${json.id}`)).json.limit === 6);
  const saved = await api("GET", `/api/v1/ratelimit/rules/${json.id}`);
  assert.deepEqual(saved.json.when, when);
}
