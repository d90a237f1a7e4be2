// The fields of a rule over attributes: conditions, and what it counts by.

import { h } from "./dom.js";
import { checkbox, field } from "./form.js";
import { t } from "./messages.js";

/** The names of these fields. */
export const SELECTOR = ["when", "per", "priority", "stops"];

/** A new rule over attributes. */
export const BLANK_SELECTOR = { when: {}, per: [], priority: 0, stops: false };

/** Whether a rule is over attributes. */
export const isSelector = (rule) => Boolean(rule.when);

/** The inputs of the fields. */
export function selectorFields(rule, disabled) {
  const when = h("textarea", { rows: 6, class: "code", spellcheck: "false", autocomplete: "off", disabled });
  const per = h("input", { type: "text", spellcheck: "false", autocomplete: "off", disabled });
  const priority = h("input", { type: "number", min: -1000, max: 1000, step: 1, disabled });
  const stops = checkbox("stops", t("field.stops"), rule.stops);
  stops.input.disabled = disabled;
  const inputs = {
    when: {
      element: field("when", t("field.when"), when, t("hint.when")),
      read: () => parsed(when.value),
      write: (value) => { when.value = JSON.stringify(value ?? {}, null, 2); },
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

/** The value of a JSON text; what is not JSON stays a text, which the server refuses. */
function parsed(text) {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return text;
  }
}
