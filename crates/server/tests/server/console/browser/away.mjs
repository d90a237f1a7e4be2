// The server stops and restarts: the page reports it, waits, and keeps the input.

import { assert, order, run, signIn, signInAgain, tolerate, until, visit } from "./lib.mjs";

run(async (open) => {
  const page = await open();
  tolerate(page, "net::ERR", 401);
  await signIn(page, "operator", "#/overview");
  await page.locator(".tile.admitted", { hasText: "/s" }).waitFor();
  const away = page.getByText("The server does not respond.");
  await order("stop");
  await away.waitFor();
  await order("start");
  await away.waitFor({ state: "hidden" });
  // Sessions end with the process: the user signs in again, in a dialog over the page.
  await signInAgain(page, "operator");
  await until("it goes on", async () => /\d/.test(await page.locator(".tile.admitted").innerText()));

  await visit(page, "#/rules/new");
  await page.getByLabel("Identifier pattern").fill("patient-*");
  await order("stop");
  const create = page.getByRole("button", { name: "Create" });
  await create.click();
  await away.first().waitFor();
  await order("start");
  await signInAgain(page, "operator", create);
  assert.equal(await page.getByLabel("Identifier pattern").inputValue(), "patient-*");
  await create.click();
  await page.getByText("user:patient-*").first().waitFor();
});
