// Tests the relay with nostr-tools: node nostr-tools.mjs URL
//
// Exits with 0 if all assertions hold, and prints the one that fails otherwise.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const modules = process.env.HEADGATE_NODE_MODULES;
const load = (path) => import(pathToFileURL(`${modules}/${path}`).href);
const { finalizeEvent, generateSecretKey, getPublicKey } = await load("nostr-tools/lib/esm/pure.js");
const { Relay, useWebSocketImplementation } = await load("nostr-tools/lib/esm/relay.js");
const { fetchRelayInformation } = await load("nostr-tools/lib/esm/nip11.js");
const { default: WebSocket } = await load("ws/wrapper.mjs");
useWebSocketImplementation(WebSocket);

const url = process.argv[2];
const secret = generateSecretKey();
const now = Math.floor(Date.now() / 1000);
const SOON = 120_000;

const event = (kind, tags, content = "", age = 0) =>
  finalizeEvent({ kind, tags, content, created_at: now - age }, secret);

const soon = (what, promise) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the client hangs: ${what}`)), SOON);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

// Stored events; the reason if the relay closes the subscription.
const fetch = (relay, filters) =>
  soon(
    JSON.stringify(filters),
    new Promise((resolve) => {
      const found = [];
      const subscription = relay.subscribe(filters, {
        // Longer than the test's timeout, so that the client does not fake an EOSE.
        eoseTimeout: 10 * SOON,
        onevent: (event) => found.push(event.id),
        oneose: () => {
          resolve({ found });
          subscription.close();
        },
        onclose: (reason) => resolve({ reason }),
      });
    }),
  );

const information = await fetchRelayInformation(url);
for (const nip of [1, 9, 11, 40, 42, 70]) assert(information.supported_nips.includes(nip), `NIP-${nip}`);

const relay = await soon("connect", Relay.connect(url));
// A busy machine may take longer than its 4.4 seconds.
relay.publishTimeout = SOON;
const about = [{ "#t": ["rust"] }];

// Published, found, and refused as a duplicate.
const first = event(1, [["t", "rust"]], "hello");
assert.equal(await relay.publish(first), "");
assert.match(await relay.publish(first), /^duplicate: /);
assert.deepEqual(await fetch(relay, about), { found: [first.id] });

// Out of bounds: the client gets a reason, and does not hang.
for (const [filters, reason] of [
  [[{ kinds: [1] }], "invalid: a #t filter is required"],
  [Array(11).fill(about[0]), "invalid: more than 10 filters"],
  [[{ "#t": ["rust"], since: now - 40 * 86_400 }], "invalid: since is more than 30 days ago"],
  [[{ "#t": ["rust"], since: now - 8 * 86_400 }], "invalid: more than 7 days between since and until"],
]) {
  assert.deepEqual(await fetch(relay, filters), { reason });
}

// Only new events.
assert.deepEqual(await fetch(relay, [{ "#t": ["rust"], limit: 0 }]), { found: [] });
const told = soon(
  "a new event",
  new Promise((resolve) => {
    const second = event(1, [["t", "live"]], "new");
    const subscription = relay.subscribe([{ "#t": ["live"], limit: 0 }], {
      onevent: (event) => {
        subscription.close();
        resolve([event.id, second.id]);
      },
      oneose: () => relay.publish(second),
    });
  }),
);
assert.equal(...(await told));

// The newest profile replaces the others.
const [old, profile] = [event(0, [["t", "people"]], "{}", 10), event(0, [["t", "people"]], "{}")];
await relay.publish(profile);
assert.match(await relay.publish(old), /^duplicate: /);
assert.deepEqual(await fetch(relay, [{ "#t": ["people"] }]), { found: [profile.id] });

// A deletion deletes.
await relay.publish(event(5, [["e", first.id], ["k", "1"]]));
assert.deepEqual(await fetch(relay, about), { found: [] });
await assert.rejects(relay.publish(first), /^Error: blocked: /);

// An expired event is refused.
const expired = event(1, [["t", "rust"], ["expiration", String(now - 1)]]);
await assert.rejects(relay.publish(expired), /^Error: invalid: event has expired/);

// A protected event is accepted after its author authenticates, even if that is optional.
const mine = event(1, [["t", "rust"], ["-"]], `of ${getPublicKey(secret)}`);
await assert.rejects(relay.publish(mine), /^Error: auth-required: /);
await soon("signing in", relay.auth(async (template) => finalizeEvent(template, secret)));
assert.equal(await relay.publish(mine), "");
assert.deepEqual(await fetch(relay, about), { found: [mine.id] });

relay.close();
console.log("nostr-tools is content");
process.exit(0);
