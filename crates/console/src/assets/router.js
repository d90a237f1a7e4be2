// Routing by the fragment of the address.

/** Returns the path and parameters of the current page. */
export function place() {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const parts = (path || "/overview").split("/").filter(Boolean).map(decoded);
  return { parts, parameters: new URLSearchParams(query ?? "") };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the address of a page. */
export function link(parts, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  const text = query.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Navigates to a page. */
export function go(parts, parameters) {
  location.hash = link(parts, parameters);
}

/** Changes the parameters of the current page without navigation. */
export function note(parts, parameters) {
  history.replaceState(null, "", link(parts, parameters));
}
