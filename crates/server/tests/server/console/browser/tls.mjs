// Sign-in over HTTPS: with a token, and at the issuer.

import { URL_BASE, assert, run, signIn, visit } from "./lib.mjs";

const session = async (page) => {
  const cookies = await page.context().cookies();
  assert.deepEqual(cookies.map(({ name }) => name), ["headgate_session"]);
  return cookies[0];
};

run(async (open) => {
  assert.match(URL_BASE, /^https:/);
  const page = await open();
  await signIn(page, "operator");
  // Figures arrive over an event stream.
  await page.locator(".tile-value").first().waitFor();
  const { secure, httpOnly, sameSite } = await session(page);
  assert.deepEqual({ secure, httpOnly, sameSite }, { secure: true, httpOnly: true, sameSite: "Strict" });
  await visit(page, "#/rules");
  await page.getByRole("link", { name: "New rule" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").waitFor();
  assert.deepEqual(await page.context().cookies(), []);

  // The state of a sign-in in progress is a secure cookie, too.
  const left = page.waitForResponse((response) => response.url() === `${URL_BASE}/console/oidc`);
  await page.getByRole("link", { name: "Sign in with your organisation" }).click();
  const way = await (await left).headerValue("set-cookie");
  assert.match(way, /^headgate_sign_in=.*; Secure$/);
  await page.getByText("sys_operator@example.com").waitFor();
  assert.ok(page.url().startsWith(`${URL_BASE}/console`), page.url());
  assert.equal((await session(page)).secure, true);
});
