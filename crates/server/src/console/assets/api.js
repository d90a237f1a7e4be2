// Requests to the server that served this page, and to no other.

/** A refusal: the server's own code, message and details. */
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = error?.code ?? "";
    this.details = error?.details ?? [];
    this.requestId = error?.request_id ?? "";
  }
}

/** The server did not answer. */
export class Away extends Error {}

const listeners = { away: new Set(), back: new Set(), signedOut: new Set() };
let isAway = false;
let isSignedOut = false;

/** Calls `listener` when the server goes away, is back, or wants to know who this is. */
export function when(event, listener) {
  listeners[event].add(listener);
}

function tell(event) {
  for (const listener of listeners[event]) listener();
}

/** Sends a request; gives the answer's JSON, or null where there is none. */
export async function send(method, path, { body, headers, signal } = {}) {
  const answer = await ask(method, path, { body, headers, signal });
  if (isAway) {
    isAway = false;
    tell("back");
  }
  if (answer.status === 204) return null;
  const json = await answer.json().catch(() => undefined);
  if (answer.ok && json === undefined) throw gone(signal);
  if (answer.ok) return json;
  const refused = new Refused(answer.status, json?.error);
  if (answer.status === 401 && path !== "/console/session") {
    isSignedOut = true;
    tell("signedOut");
  }
  throw refused;
}

async function ask(method, path, { body, headers, signal }) {
  const options = {
    method,
    signal,
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
    headers: { "x-headgate-console": "1", ...headers },
  };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  try {
    return await fetch(path, options);
  } catch (error) {
    throw signal?.aborted ? error : gone(signal);
  }
}

/** What to throw where no answer came, or only a part of it. */
function gone(signal) {
  if (!signal?.aborted && !isAway) {
    isAway = true;
    tell("away");
  }
  return new Away("the server does not answer");
}

export const get = (path, options) => send("GET", path, options);
export const post = (path, body, options) => send("POST", path, { body, ...options });
export const put = (path, body, options) => send("PUT", path, { body, ...options });
export const remove = (path, options) => send("DELETE", path, options);

/** A path with those parameters that say something. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Somebody signs out: nothing more is asked for them. */
export function leaving() {
  isSignedOut = true;
}

/** Somebody is signed in again: what waits for that goes on. */
export function signedIn() {
  isSignedOut = false;
}

/** Calls `look` now and every `milliseconds`, while the page is seen, until `signal` says to stop. */
export async function watch(look, milliseconds, signal) {
  while (!signal.aborted) {
    if (!document.hidden && !isSignedOut) {
      try {
        await look();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Away) && !(error instanceof Refused)) throw error;
      }
    }
    await new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, milliseconds);
      signal.addEventListener("abort", end);
    });
  }
}
