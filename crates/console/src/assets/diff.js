// Differences between two versions of an object.

import { h } from "./dom.js";
import { t, has } from "./messages.js";

/** Returns the names of the fields that differ. */
export function changed(before, after) {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const text = (value) => JSON.stringify(value ?? null);
  return [...names].filter((name) => text(before?.[name]) !== text(after?.[name]));
}

/** A table of fields in several versions; each column is a title and an object. */
export function comparison(columns, names, caption) {
  const head = h("tr", {}, h("th", { scope: "col" }, t("field")), columns.map(([title]) => h("th", { scope: "col" }, title)));
  const rows = names.map((name) => h("tr", {}, h("th", { scope: "row" }, fieldName(name)),
    columns.map(([title, state], i) => h("td", { "data-label": title, class: kind(columns, i, name) }, shown(state?.[name])))));
  return h("table", { class: "comparison" }, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, rows));
}

function kind(columns, i, name) {
  const text = (state) => JSON.stringify(state?.[name] ?? null);
  if (columns.length === 1) return "only";
  if (i === 0) return "was";
  return text(columns[i][1]) === text(columns[0][1]) ? "same" : "now";
}

/** Returns the label of a field. */
export function fieldName(name) {
  const key = `field.${name}`;
  return has(key) ? t(key) : name;
}

/** Formats a value. */
export function shown(value) {
  if (value === null || value === undefined) return h("span", { class: "none" }, t("none"));
  if (typeof value === "boolean") return t(value ? "yes" : "no");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
