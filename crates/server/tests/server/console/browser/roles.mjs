// Actions that a role may not do are hidden, and refused by the server.

import { api, assert, check, run, signIn, tolerate, visit } from "./lib.mjs";

const OFFERS = {
  auditor: { create: 0, edit: 0, drop: 0, resetCounters: 0, increment: 0, resetUsage: 0, dropQuota: 0, masked: true },
  operator: { create: 1, edit: 1, drop: 0, resetCounters: 1, increment: 1, resetUsage: 0, dropQuota: 0, masked: false },
  admin: { create: 1, edit: 1, drop: 1, resetCounters: 1, increment: 1, resetUsage: 1, dropQuota: 1, masked: false },
};

run(async (open) => {
  const rule = { name: "Roles", scope: "user", identifier_pattern: "role-player-*", limit: 1, window_seconds: 86_400 };
  const { json: made } = await api("POST", "/api/v1/ratelimit/rules", rule);
  const policy = { name: "Roles", subject_type: "user", subject_id: "role-player", limit: 5, period: "monthly" };
  const { json: quota } = await api("POST", "/api/v1/quotas", policy);
  for (let i = 0; i < 3; i += 1) await check("role-player-one");
  for (const [role, offers] of Object.entries(OFFERS)) await seenBy(await open(), role, offers, made.id, quota.id);
});

async function seenBy(page, role, offers, ruleId, quotaId) {
  const offered = (name) => page.getByRole("button", { name }).count();
  await signIn(page, role, "#/rules?search=roles");
  await page.getByRole("link", { name: "Roles", exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: "New rule" }).count(), offers.create, `${role}: create`);
  assert.equal(await page.getByRole("link", { name: "Edit Roles" }).count(), offers.edit, `${role}: edit`);
  assert.equal(await offered("Delete Roles"), offers.drop, `${role}: delete`);
  await visit(page, `#/rules/${ruleId}`);
  await page.getByText("At once: 1 requests.").waitFor();
  assert.equal(await offered("Save"), offers.edit, `${role}: save`);
  await visit(page, "#/explain?scope=user&identifier=role-player-one");
  await page.getByText("1 used, 0 left").waitFor();
  assert.equal(await offered("Reset counters"), offers.resetCounters, `${role}: reset counters`);
  await visit(page, `#/quotas/${quotaId}`);
  await page.getByText("0 / 5 (0 %)").waitFor();
  assert.equal(await offered("Increment"), offers.increment, `${role}: increment`);
  assert.equal(await offered("Reset usage"), offers.resetUsage, `${role}: reset usage`);
  assert.equal(await offered("Delete"), offers.dropQuota, `${role}: delete quota`);
  await visit(page, "#/overview");
  await page.getByText(offers.masked ? "user:rol***ne" : "user:role-player-one").waitFor();
  assert.equal(await page.getByText("role-player-one").count(), offers.masked ? 0 : 1, `${role}: masked`);
  await refusedAllTheSame(page, role, ruleId);
}

/** Sends a request that the page itself would not send. */
async function refusedAllTheSame(page, role, ruleId) {
  const ask = (method, path, body, marked = true) => page.evaluate(async ([how, where, what, mark]) => {
    const headers = { ...(mark ? { "x-headgate-console": "1" } : {}), ...(what ? { "content-type": "application/json" } : {}) };
    const answer = await fetch(where, { method: how, headers, body: what && JSON.stringify(what) });
    return answer.status;
  }, [method, path, body, marked]);
  tolerate(page, 400, 403);
  const [drop, reset] = [`/api/v1/ratelimit/rules/${ruleId}`, "/api/v1/ratelimit/reset"];
  assert.equal(await ask("GET", "/api/v1/ratelimit/rules", null, false), 403, "without the mark the cookie is nobody's");
  assert.equal(await ask("POST", reset, {}), role === "auditor" ? 403 : 400);
  if (role !== "admin") assert.equal(await ask("DELETE", drop), 403);
}
