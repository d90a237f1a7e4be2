// Fields with their labels, and what is wrong with them beside them.

import { Away } from "./api.js";
import { h, uniqueId } from "./dom.js";
import { has, language, t } from "./messages.js";

/** A field with a label; `hint` says more, and `input` is the element itself. */
export function field(name, label, input, hint) {
  const [id, error, more] = [uniqueId(name), uniqueId("error"), hint ? uniqueId("hint") : null];
  input.id = id;
  input.setAttribute("name", name);
  input.setAttribute("aria-describedby", [more, error].filter(Boolean).join(" "));
  return h("div", { class: "field" }, h("label", { for: id }, label), input,
    hint ? h("p", { class: "hint", id: more }, hint) : null,
    h("p", { class: "field-error", id: error, "data-field": name }));
}

/** A choice; each is a value and its words. */
export function select(choices, value, attributes = {}) {
  const options = choices.map(([key, words]) => h("option", { value: key, selected: key === value }, words));
  return h("select", attributes, options);
}

/** A box to tick, with its label. */
export function checkbox(name, label, checked, on) {
  const id = uniqueId(name);
  const input = h("input", { type: "checkbox", id, name, on });
  input.checked = checked;
  return { input, element: h("div", { class: "check" }, input, h("label", { for: id }, label)) };
}

/** What is wrong, in the reader's words where there are some. */
export function told(detail) {
  const key = `reason.${detail.reason}`;
  return language !== "en" && has(key) ? t(key) : detail.message;
}

/** What an error says. */
export function said(error) {
  if (error instanceof Away) return t("away.text");
  const key = `code.${error.code}`;
  const words = language !== "en" && has(key) ? t(key) : error.message;
  return words;
}

/** Takes back what was said about the fields of `form`. */
export function clear(form) {
  for (const place of form.querySelectorAll("[data-field]")) place.textContent = "";
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

/** Says beside its field what is wrong with it, and in `place` what belongs to none. */
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

/** A text that stands out. */
export function notice(text, kind = "error") {
  return h("p", { class: `notice ${kind}` }, text);
}

/** A field for a reason that the audit log keeps. */
export function reasonField() {
  const input = h("textarea", { rows: 2, required: true });
  return { input, element: field("reason", t("reason"), input, t("reason.hint")) };
}
