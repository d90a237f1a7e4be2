// Words in the reader's language.

const KEPT = "headgate.language";

/** The languages, each by its own name. */
export const LANGUAGES = { en: "English", ja: "日本語" };

/** The language in use. */
export const language = chosen();

// Only the words of one language are fetched.
const { words: table } = await (language === "ja" ? import("./ja.js") : import("./en.js"));

function chosen() {
  const wanted = [kept(), ...navigator.languages];
  const known = wanted.map((name) => name?.split("-")[0]).find((name) => name in LANGUAGES);
  return known ?? "en";
}

function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

/** Speaks another language from now on. */
export function speak(name) {
  try {
    localStorage.setItem(KEPT, name);
  } catch {
    // Where nothing is kept, the browser's language decides.
  }
  location.reload();
}

/** The words for `key`, with `values` in the places of their names. */
export function t(key, values = {}) {
  const words = table[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Whether there are words for `key`. */
export function has(key) {
  return key in table;
}
