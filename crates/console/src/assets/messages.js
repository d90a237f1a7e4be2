// Translations.

const KEPT = "headgate.language";

/** The languages by their own names. */
export const LANGUAGES = { en: "English", ja: "日本語" };

/** The current language. */
export const language = chosen();

// Only one language is loaded.
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

/** Switches to another language. */
export function speak(name) {
  try {
    localStorage.setItem(KEPT, name);
  } catch {
    // Without storage, the browser's language is used.
  }
  location.reload();
}

/** Returns the text for `key` with `values` filled in. */
export function t(key, values = {}) {
  const words = table[key] ?? key;
  return words.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Whether there is a text for `key`. */
export function has(key) {
  return key in table;
}
