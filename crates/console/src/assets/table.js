// Tables that become cards on narrow screens.

import { h } from "./dom.js";

/** A table; `columns` are titles, and each row is an array of cells. */
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const head = h("tr", {}, columns.map((title) => h("th", { scope: "col" }, title)));
  const body = rows.map((cells) => h("tr", {}, cells.map((cell, i) => h("td", { "data-label": columns[i] }, h("div", { class: "cell" }, cell)))));
  return h("div", { class: "table-frame" }, h("table", { class: "list" }, h("caption", { class: "hidden-visually" }, caption), h("thead", {}, head), h("tbody", {}, body)));
}

/** A badge. */
export function badge(words, kind) {
  return h("span", { class: `badge ${kind}` }, words);
}
