// The fields of a rule over attributes: conditions, and what it counts by.

import { conditions } from "./conditions.js";
import { h, uniqueId } from "./dom.js";
import { checkbox, field } from "./form.js";
import { t } from "./messages.js";

/** The names of these fields. */
export const SELECTOR = ["when", "per", "priority", "stops"];

/** A new rule over attributes. */
export const BLANK_SELECTOR = { when: {}, per: [], priority: 0, stops: false };

/** Whether a rule is over attributes. */
export const isSelector = (rule) => Boolean(rule.when);

/** The inputs of the fields. */
export function selectorFields(rule, disabled, changed) {
  const when = conditions(disabled, changed);
  const heading = uniqueId("when");
  const per = h("input", { type: "text", spellcheck: "false", autocomplete: "off", disabled });
  const priority = h("input", { type: "number", min: -1000, max: 1000, step: 1, disabled });
  const stops = checkbox("stops", t("field.stops"), rule.stops);
  stops.input.disabled = disabled;
  const inputs = {
    when: {
      element: h("div", { class: "field", role: "group", "aria-labelledby": heading }, h("p", { class: "label", id: heading }, t("field.when")), when.element,
        h("p", { class: "hint" }, t("hint.when")), h("p", { class: "field-error", "data-field": "when", role: "alert" })),
      read: when.read,
      write: when.write,
    },
    per: {
      element: field("per", t("field.per"), per, t("hint.per")),
      read: () => per.value.split(",").map((name) => name.trim()).filter(Boolean),
      write: (value) => { per.value = (value ?? []).join(", "); },
    },
    priority: {
      element: field("priority", t("field.priority"), priority, t("hint.priority")),
      read: () => Number(priority.value || 0),
      write: (value) => { priority.value = value ?? 0; },
    },
    stops: { element: stops.element, read: () => stops.input.checked, write: (value) => { stops.input.checked = Boolean(value); } },
  };
  for (const name of SELECTOR) inputs[name].write(rule[name]);
  return inputs;
}
