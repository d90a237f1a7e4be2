// The limit of a rule over attributes: a number, or numbers by plan.

import { h } from "./dom.js";
import { field } from "./form.js";
import { t } from "./messages.js";

/** The input of `limit`; with an attribute to choose by, its number is the default. */
export function planLimit(rule, disabled, changed) {
  const units = (value, label) => h("input", { type: "number", inputmode: "numeric", min: 1, step: 1, value: value ?? "", disabled, "aria-label": label });
  const text = (value, label, placeholder) => h("input", { type: "text", value: value ?? "", disabled, autocomplete: "off", spellcheck: "false", placeholder, "aria-label": label });
  const number = units(null, undefined);
  const by = text("", undefined, "plan");
  const rows = h("div", { class: "rows" });
  const add = (value, amount) => {
    const [name, count] = [text(value, t("plans.value"), "pro"), units(amount, t("plans.units"))];
    const row = h("div", { class: "row plan" }, name, count,
      disabled ? null : h("button", { type: "button", "aria-label": t("builder.remove"), on: { click: () => { row.remove(); changed(); } } }, "×"));
    row.read = () => [name.value.trim(), count.value === "" ? null : Number(count.value)];
    rows.append(row);
    return name;
  };
  const more = disabled ? null : h("button", { type: "button", on: { click: () => { add().focus(); changed(); } } }, t("plans.add"));
  const plans = h("div", { class: "plans" }, rows, more);
  const adapt = () => { plans.hidden = by.value.trim() === ""; };
  by.addEventListener("input", adapt);
  const input = {
    element: h("div", {}, field("limit", t("field.limit"), number, t("hint.limit_default")), field("by", t("plans.by"), by, t("hint.plans")), plans),
    read: () => {
      const given = number.value === "" ? null : Number(number.value);
      if (by.value.trim() === "") return given;
      const values = Object.fromEntries([...rows.children].map((row) => row.read()).filter(([value]) => value));
      const all = { by: by.value.trim(), ...values, ...(given === null ? {} : { default: given }) };
      // In the order of the API, so that nothing looks changed.
      return Object.fromEntries(Object.entries(all).sort(([one], [other]) => (one < other ? -1 : 1)));
    },
    write: (value) => {
      const { by: name = "", default: fallback = null, ...values } = typeof value === "object" && value ? value : { default: value };
      by.value = name;
      number.value = fallback ?? "";
      rows.replaceChildren();
      for (const [plan, amount] of Object.entries(values)) add(plan, amount);
      adapt();
    },
  };
  input.write(rule.limit);
  return input;
}
