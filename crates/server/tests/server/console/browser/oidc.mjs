// Sign-in at the issuer.

import { URL_BASE, assert, run } from "./lib.mjs";

run(async (open) => {
  const page = await open();
  await page.goto(`${URL_BASE}/console`);
  await page.getByRole("link", { name: "Sign in with your organisation" }).click();
  await page.getByText("sys_operator@example.com").waitFor();
  await page.locator(".tile-value").first().waitFor();
  const names = (await page.context().cookies()).map(({ name }) => name);
  assert.deepEqual(names, ["headgate_session"], "nothing stays of the way");
  await page.getByRole("link", { name: "Rules", exact: true }).click();
  await page.getByRole("link", { name: "New rule" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();

  // A callback with a foreign code has no sign-in in progress.
  await page.goto(`${URL_BASE}/console/oidc/callback?code=stolen&state=forged`);
  await page.getByText("Sign-in failed.").waitFor();
});
