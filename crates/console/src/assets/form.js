// Form fields with labels and errors.

import { Away } from "./api.js";
import { h, uniqueId } from "./dom.js";
import { has, language, t } from "./messages.js";

/** A field with a label and an optional hint; `input` is the element. */
export function field(name, label, input, hint) {
  const [id, error, more] = [uniqueId(name), uniqueId("error"), hint ? uniqueId("hint") : null];
  input.id = id;
  input.setAttribute("name", name);
  input.setAttribute("aria-describedby", [more, error].filter(Boolean).join(" "));
  return h("div", { class: "field" }, h("label", { for: id }, label), input,
    hint ? h("p", { class: "hint", id: more }, hint) : null,
    h("p", { class: "field-error", id: error, "data-field": name }));
}

/** A select; each option is a value and its label. */
export function select(choices, value, attributes = {}) {
  const options = choices.map(([key, words]) => h("option", { value: key, selected: key === value }, words));
  return h("select", attributes, options);
}

/** A checkbox with its label. */
export function checkbox(name, label, checked, on) {
  const id = uniqueId(name);
  const input = h("input", { type: "checkbox", id, name, on });
  input.checked = checked;
  return { input, element: h("div", { class: "check" }, input, h("label", { for: id }, label)) };
}

/** Returns a field error, translated if possible. */
export function told(detail) {
  const key = `reason.${detail.reason}`;
  return language !== "en" && has(key) ? t(key) : detail.message;
}

/** Returns the message of an error. */
export function said(error) {
  if (error instanceof Away) return t("away.text");
  const key = `code.${error.code}`;
  const words = language !== "en" && has(key) ? t(key) : error.message;
  return words;
}

/** Removes the errors of `form`. */
export function clear(form) {
  for (const place of form.querySelectorAll("[data-field]")) place.textContent = "";
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

/** Shows each error beside its field, and others in `place`. */
export function complain(form, place, error) {
  clear(form);
  const rest = [];
  let first = null;
  for (const detail of error.details ?? []) {
    const beside = [...form.querySelectorAll("[data-field]")].find((it) => it.dataset.field === detail.field);
    const input = form.elements.namedItem(detail.field);
    if (beside && input) {
      beside.textContent = told(detail);
      input.setAttribute("aria-invalid", "true");
      first ??= input;
    } else {
      rest.push(told(detail));
    }
  }
  if (!first || rest.length) place.replaceChildren(notice([said(error), ...rest].join(" · ")));
  first?.focus();
}

/** A highlighted message. */
export function notice(text, kind = "error") {
  return h("p", { class: `notice ${kind}` }, text);
}

/** A field for the reason that the audit log records. */
export function reasonField() {
  const input = h("textarea", { rows: 2, required: true });
  return { input, element: field("reason", t("reason"), input, t("reason.hint")) };
}
