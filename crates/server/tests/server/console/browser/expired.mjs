// A session that expires during work loses no input.

import { api, assert, run, signIn, signInAgain, tolerate, until } from "./lib.mjs";

run(async (open) => {
  const page = await open();
  tolerate(page, 401);
  await signIn(page, "operator", "#/rules/new");
  await page.getByLabel("Name").fill("Slowly written");
  await page.getByLabel("Identifier pattern").fill("slow-*");
  // The session lasts for twenty seconds; later requests are refused.
  await until("the session is over", () => page.evaluate(async () => {
    const answer = await fetch("/console/session", { headers: { "x-headgate-console": "1" } });
    return !(await answer.json()).signed_in;
  }));
  const create = page.getByRole("button", { name: "Create" });
  await signInAgain(page, "operator", create);
  assert.equal((await api("GET", "/api/v1/ratelimit/rules?search=slow")).json.pagination.total_count, 0);
  assert.equal(await page.getByLabel("Name").inputValue(), "Slowly written");
  await create.click();
  await page.getByRole("link", { name: "Slowly written", exact: true }).waitFor();
});
