// A session that ends while somebody works loses nothing of their work.

import { TOKENS, api, assert, run, signIn, tolerate, until } from "./lib.mjs";

run(async (open) => {
  const page = await open();
  tolerate(page, 401);
  await signIn(page, "operator", "#/rules/new");
  await page.getByLabel("Name").fill("Slowly written");
  await page.getByLabel("Identifier pattern").fill("slow-*");
  // The session lasts for two seconds; whatever is asked after that is refused.
  const again = page.getByRole("dialog", { name: "Sign in" });
  await until("the session is over", () => page.evaluate(async () => {
    const answer = await fetch("/console/session", { headers: { "x-headgate-console": "1" } });
    return !(await answer.json()).signed_in;
  }));
  await page.getByRole("button", { name: "Create" }).click();
  await again.getByText("Your session has ended.").waitFor();
  assert.equal((await api("GET", "/api/v1/ratelimit/rules?search=slow")).json.pagination.total_count, 0);
  await again.getByLabel("Token").fill(TOKENS.operator);
  await again.getByRole("button", { name: "Sign in" }).click();
  await again.waitFor({ state: "detached" });
  assert.equal(await page.getByLabel("Name").inputValue(), "Slowly written");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("link", { name: "Slowly written", exact: true }).waitFor();
});
