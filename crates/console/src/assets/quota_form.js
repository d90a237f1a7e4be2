// The form of a quota policy, with a preview of changes.

import { get, post, put } from "./api.js";
import { changed, comparison } from "./diff.js";
import { announce, h } from "./dom.js";
import { checkbox, clear, complain, field, notice, said, select } from "./form.js";
import { t } from "./messages.js";
import { QUOTAS, SUBJECT_TYPES, at } from "./quotas.js";
import { go, link } from "./router.js";

const FIELDS = ["name", "subject_type", "subject_id", "limit", "period", "time_zone", "alert_threshold_percent", "enabled"];
const BLANK = { name: "", subject_type: "tenant", subject_id: "", limit: 10_000, period: "monthly", time_zone: null, alert_threshold_percent: 80, enabled: true };

export const title = ([, id]) => t(id === "new" ? "quotas.new" : "quotas.edit");

export async function render(content, { parts: [, id], signal, can }) {
  if (!can("write_quotas")) return content.append(notice(t("not_permitted")));
  try {
    edit(content, id === "new" ? null : await get(at(id), { signal }));
  } catch (error) {
    if (!signal.aborted) content.append(notice(said(error)));
  }
}

function edit(content, quota) {
  const base = quota ? Object.fromEntries(FIELDS.map((name) => [name, quota[name] ?? null])) : null;
  const inputs = fields(base ?? BLANK);
  const read = () => Object.fromEntries(FIELDS.map((name) => [name, inputs[name].read()]));
  const [problem, changes] = [h("div", { role: "alert" }), h("div", { class: "changes" })];
  const save = h("button", { class: "primary", type: "submit" }, t(quota ? "save" : "create"));
  const back = quota ? ["quotas", quota.id] : ["quotas"];
  const form = h("form", { class: "editor narrow", novalidate: true, "data-unsaved": !quota }, FIELDS.map((name) => inputs[name].element), changes, problem,
    h("div", { class: "actions" }, save, h("a", { class: "button", href: link(back) }, t("cancel"))));
  const update = () => {
    const now = read();
    const names = base ? changed(base, now) : [];
    form.toggleAttribute("data-unsaved", !base || names.length > 0);
    changes.replaceChildren(names.length ? comparison([[t("before"), base], [t("after"), now]], names, t("rules.changes")) : "");
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    problem.replaceChildren();
    clear(form);
    try {
      const done = await (quota ? put(at(quota.id), read()) : post(QUOTAS, read()));
      form.removeAttribute("data-unsaved");
      announce(t("saved"));
      go(["quotas", done.id]);
    } catch (error) {
      complain(form, problem, error);
    }
    save.disabled = false;
  });
  content.append(form);
}

function fields(quota) {
  const text = (name, attributes = {}, hint) => {
    const input = h("input", { type: "text", autocomplete: "off", value: quota[name] ?? "", ...attributes });
    return { element: field(name, t(`field.${name}`), input, hint), read: () => input.value || null };
  };
  const amount = (name, hint) => {
    const it = text(name, { type: "number", inputmode: "numeric", min: 0, step: 1 }, hint);
    return { ...it, read: () => { const given = it.read(); return given === null ? null : Number(given); } };
  };
  const choice = (name, choices) => {
    const input = select(choices, quota[name]);
    return { element: field(name, t(`field.${name}`), input), read: () => input.value };
  };
  const enabled = checkbox("enabled", t("field.enabled"), quota.enabled);
  return {
    name: text("name"),
    subject_type: choice("subject_type", SUBJECT_TYPES.map((name) => [name, t(`subject_type.${name}`)])),
    subject_id: text("subject_id", { spellcheck: "false" }),
    limit: amount("limit"),
    period: choice("period", ["daily", "monthly"].map((name) => [name, t(`period.${name}`)])),
    time_zone: text("time_zone", { spellcheck: "false", placeholder: "UTC" }, t("hint.time_zone")),
    alert_threshold_percent: amount("alert_threshold_percent", t("hint.threshold")),
    enabled: { element: enabled.element, read: () => enabled.input.checked },
  };
}
