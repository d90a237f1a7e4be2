// Requests to the server of this page.

/** An error response: code, message and details. */
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = error?.code ?? "";
    this.details = error?.details ?? [];
    this.requestId = error?.request_id ?? "";
  }
}

/** The server did not respond. */
export class Away extends Error {}

const listeners = { away: new Set(), back: new Set(), signedOut: new Set() };
let isAway = false;
let isSignedOut = false;

/** Calls `listener` when the server becomes unreachable, is reachable again, or requires sign-in. */
export function when(event, listener) {
  listeners[event].add(listener);
}

function tell(event) {
  for (const listener of listeners[event]) listener();
}

/** Sends a request; returns the response's JSON, or null if there is none. */
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

/** Returns the error for a missing or incomplete response. */
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

/** Returns a path with the parameters that are not empty. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Stops requests after sign-out. */
export function leaving() {
  isSignedOut = true;
}

/** Continues waiting requests after sign-in. */
export function signedIn() {
  isSignedOut = false;
}

/** Calls `look` now and every `milliseconds` while the page is visible, until `signal` aborts. */
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
