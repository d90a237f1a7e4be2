// A builder for conditions on attributes: one row for each, with an operator and a value.

import { h } from "./dom.js";
import { select } from "./form.js";
import { t } from "./messages.js";

const OPERATORS = ["is", "one_of", "not", "prefix", "suffix", "in", "not_in", "range", "regex", "exists", "missing", "json"];
const PLAIN = { prefix: "prefix", suffix: "suffix", regex: "regex" };

/** The rows of conditions; `write` and `read` convert from and to the API's object. */
export function conditions(disabled, changed) {
  const rows = h("div", { class: "rows" });
  const add = (condition = { name: "", operator: "is", value: "" }) => {
    const name = h("input", { type: "text", value: condition.name, disabled, autocomplete: "off", spellcheck: "false", placeholder: "tenant", "aria-label": t("builder.attribute") });
    const operator = select(OPERATORS.map((it) => [it, t(`operator.${it}`)]), condition.operator, { disabled, "aria-label": t("builder.operator") });
    const value = h("input", { type: "text", value: condition.value, disabled, autocomplete: "off", spellcheck: "false", "aria-label": t("builder.value") });
    const adapt = () => { value.hidden = ["exists", "missing"].includes(operator.value); };
    operator.addEventListener("input", adapt);
    adapt();
    const row = h("div", { class: "row condition" }, name, operator, value,
      disabled ? null : h("button", { type: "button", "aria-label": t("builder.remove"), on: { click: () => { row.remove(); changed(); } } }, "×"));
    row.read = () => [name.value.trim(), source(operator.value, value.value)];
    rows.append(row);
    return name;
  };
  const more = disabled ? null : h("button", { type: "button", on: { click: () => { add().focus(); changed(); } } }, t("builder.add_condition"));
  return {
    element: h("div", {}, rows, more),
    read: () => Object.fromEntries([...rows.children].map((row) => row.read()).filter(([name]) => name)),
    write: (when) => {
      rows.replaceChildren();
      for (const [name, condition] of Object.entries(when ?? {})) add({ name, ...parts(condition) });
    },
  };
}

const listed = (text) => text.split(",").map((item) => item.trim()).filter(Boolean);
const isText = (value) => typeof value === "string" || typeof value === "number";
const isList = (value) => Array.isArray(value) && value.length > 0 && value.every((item) => isText(item) && !String(item).includes(",") && String(item).trim() === String(item) && item !== "");

/** The condition of an operator and a value, as the API has it. */
function source(operator, text) {
  switch (operator) {
    case "one_of": return listed(text);
    case "not": { const items = listed(text); return { not: items.length === 1 ? items[0] : items }; }
    case "in": case "not_in": return { [operator]: listed(text) };
    case "prefix": case "suffix": case "regex": return { [PLAIN[operator]]: text };
    case "range": {
      const [min, max] = text.split("..").map((side) => side.trim());
      const bound = (side) => (side === "" || Number.isNaN(Number(side)) ? side : Number(side));
      // In the order of the API, so that nothing looks changed.
      return { ...(max ? { max: bound(max) } : {}), ...(min ? { min: bound(min) } : {}) };
    }
    case "exists": return { exists: true };
    case "missing": return { exists: false };
    case "json": try { return JSON.parse(text); } catch { return text; }
    default: return text;
  }
}

/** The operator and value of a condition; what no operator can say is JSON. */
function parts(condition) {
  const said = read(condition);
  // Only what comes back as it was.
  if (said && JSON.stringify(source(said.operator, said.value)) === JSON.stringify(condition)) return said;
  return { operator: "json", value: JSON.stringify(condition) };
}

function read(condition) {
  if (isText(condition)) return { operator: "is", value: String(condition) };
  if (isList(condition)) return { operator: "one_of", value: condition.join(", ") };
  if (condition === null || typeof condition !== "object" || Array.isArray(condition)) return null;
  const names = Object.keys(condition);
  if (names.every((name) => ["min", "max"].includes(name))) return { operator: "range", value: `${condition.min ?? ""}..${condition.max ?? ""}` };
  if (names.length !== 1) return null;
  const [name] = names;
  const value = condition[name];
  if (name === "exists") return { operator: value ? "exists" : "missing", value: "" };
  if (PLAIN[name] && typeof value === "string") return { operator: name, value };
  if (["in", "not_in"].includes(name) && isList(value)) return { operator: name, value: value.join(", ") };
  if (name === "not" && (typeof value === "string" || isList(value))) return { operator: "not", value: [value].flat().join(", ") };
  return null;
}
