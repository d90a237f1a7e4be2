// One rule: form, preview of the limit and of changes.

import { get, post, put, withQuery } from "./api.js";
import { changed, comparison } from "./diff.js";
import { announce, h } from "./dom.js";
import { checkbox, clear, complain, field, notice, said, select } from "./form.js";
import { time } from "./format.js";
import { t } from "./messages.js";
import { overridesOf } from "./overrides.js";
import { planLimit } from "./plans.js";
import { plot } from "./preview.js";
import { go, link } from "./router.js";
import { RULES, SCOPES } from "./rules.js";
import { sample } from "./sample.js";
import { BLANK_SELECTOR, SELECTOR, isSelector, selectorFields } from "./selector.js";

const ALGORITHMS = ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_window_counter", "concurrency"];
const FAIL_MODES = ["capped", "open", "closed", "local"];
const SUBJECTS = ["scope", "identifier_pattern"];
const FIELDS = ["name", ...SUBJECTS, ...SELECTOR, "limit", "window_seconds", "algorithm", "burst", "fail_mode", "lease", "enabled"];
const BLANK = { name: null, scope: "user", identifier_pattern: "", limit: 100, window_seconds: 60, algorithm: "token_bucket", burst: null, fail_mode: null, lease: null, enabled: true };

const NEW = { new: BLANK, "new-attributes": { ...BLANK, ...BLANK_SELECTOR } };

export const title = ([, id]) => t({ new: "rules.new", "new-attributes": "rules.new_attributes" }[id] ?? "rules.one");

export async function render(content, { parts: [, id], signal, can }) {
  if (NEW[id]) return edit(content, null, signal, can, NEW[id]);
  try {
    edit(content, await get(`${RULES}/${encodeURIComponent(id)}`, { signal }), signal, can);
  } catch (error) {
    if (!signal.aborted) content.append(notice(said(error)), h("a", { href: link(["rules"]) }, t("rules.back")));
  }
}

/** The editable fields of a rule. */
function spec(rule) {
  const other = isSelector(rule) ? SUBJECTS : SELECTOR;
  return Object.fromEntries(FIELDS.filter((name) => !other.includes(name)).map((name) => [name, rule[name] ?? null]));
}

function edit(content, rule, signal, can, blank) {
  const form = h("form", { class: "editor", novalidate: true });
  const state = { rule, base: rule ? spec(rule) : null, form };
  const inputs = fields(rule ?? blank, !can("write_rules"), () => update());
  const [problem, changes, picture] = [h("div", { role: "alert" }), h("div", { class: "changes" }), plot(signal)];
  const trial = isSelector(rule ?? blank) ? sample(signal) : null;
  const read = () => reading(inputs);
  const update = () => {
    const now = read();
    picture.show(now);
    trial?.show(now);
    const names = state.base ? changed(state.base, now) : [];
    if (names.length || !state.base) form.setAttribute("data-unsaved", "");
    else form.removeAttribute("data-unsaved");
    changes.replaceChildren(...(state.base && names.length
      ? [comparison([[t("before"), state.base], [t("after"), now]], names, t("rules.changes"))]
      : state.base ? [h("p", { class: "hint" }, t("rules.unchanged"))] : []));
  };
  const save = h("button", { class: "primary", type: "submit" }, t(rule ? "save" : "create"));
  const actions = h("div", { class: "actions" }, can("write_rules") ? save : null, h("a", { class: "button", href: link(["rules"]) }, t("rules.back")));
  form.append(h("div", { class: "columns" }, h("div", {}, Object.values(inputs).map((it) => it.element)), h("div", {}, picture.element, trial?.element ?? null)), changes, problem, actions);
  form.addEventListener("input", update);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    problem.replaceChildren();
    clear(form);
    try {
      await store(state, read());
      form.removeAttribute("data-unsaved");
      announce(t("saved"));
      go(["rules"]);
    } catch (error) {
      await refused(error, { state, read, inputs, problem, update });
    }
    save.disabled = false;
  });
  content.append(rule ? h("p", { class: "hint" }, t("changed"), " ", time(rule.updated_at)) : "", form, rule ? overridesOf(rule, signal, can) : "");
  update();
}

/** Saves the rule, unless it has changed since it was opened. */
function store({ rule }, now) {
  if (!rule) return post(RULES, now);
  return put(`${RULES}/${encodeURIComponent(rule.id)}`, now, { headers: { "if-match": `"${rule.updated_at}"` } });
}

async function refused(error, editing) {
  const { state, problem, read } = editing;
  if (error.status === 412) return conflict(await get(`${RULES}/${encodeURIComponent(state.rule.id)}`), editing);
  complain(state.form, problem, error);
  if (error.status !== 409) return;
  const mine = read();
  const pattern = isSelector(mine) ? mine.name : mine.identifier_pattern;
  const { rules } = await get(withQuery(RULES, { scope: isSelector(mine) ? "attributes" : mine.scope, search: pattern, page_size: 100 }));
  const other = rules.find((it) => it.identifier_pattern === pattern && it.window_seconds === mine.window_seconds && it.id !== state.rule?.id);
  if (!other) return;
  const names = changed(spec(other), mine);
  problem.append(names.length ? comparison([[t("rules.other"), spec(other)], [t("mine"), mine]], names, t("rules.exists")) : "",
    h("a", { class: "button", href: link(["rules", other.id]) }, t("rules.open_other")));
}

/** Shows the original, the current and the edited version of the rule. */
function conflict(theirs, { state, read, inputs, problem, update }) {
  const [was, now, mine] = [state.base, spec(theirs), read()];
  const names = FIELDS.filter((name) => changed({ x: was[name] }, { x: now[name] }).length || changed({ x: was[name] }, { x: mine[name] }).length);
  const settle = (values) => {
    Object.assign(state, { rule: theirs, base: now });
    Object.entries(values).forEach(([name, value]) => inputs[name].write(value));
    problem.replaceChildren();
    update();
    state.form.querySelector("[name]")?.focus();
  };
  problem.replaceChildren(notice(t("rules.conflict")),
    comparison([[t("seen"), was], [t("theirs"), now], [t("mine"), mine]], names, t("rules.conflict_caption")),
    h("div", { class: "actions" },
      h("button", { type: "button", on: { click: () => settle(mine) } }, t("rules.keep_mine")),
      h("button", { type: "button", on: { click: () => settle(now) } }, t("rules.take_theirs"))));
}

function fields(rule, disabled, changed) {
  const text = (name, attributes, hint) => {
    const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", value: rule[name] ?? "", disabled, ...attributes });
    return { element: field(name, t(`field.${name}`), input, hint), read: () => input.value || null, write: (value) => { input.value = value ?? ""; } };
  };
  const amount = (name, hint) => {
    const it = text(name, { type: "number", inputmode: "numeric", min: 1, step: 1 }, hint);
    return { ...it, read: () => { const given = it.read(); return given === null ? null : Number(given); } };
  };
  const choice = (name, choices, hint) => {
    const input = select(choices, rule[name] ?? "", { disabled });
    return { element: field(name, t(`field.${name}`), input, hint), read: () => input.value || null, write: (value) => { input.value = value ?? ""; } };
  };
  const lease = () => {
    const part = (name, most, hint) => {
      const input = h("input", { type: "number", inputmode: "numeric", min: 0, max: most, step: 1, value: rule.lease?.[name] ?? "", disabled });
      return { input, element: field(`lease.${name}`, t(`field.lease.${name}`), input, hint) };
    };
    const [share, hold] = [part("share_percent", 50, t("hint.lease")), part("hold_ms", 1000)];
    const given = ({ input }) => (input.value === "" ? null : Number(input.value));
    return {
      element: h("div", {}, share.element, hold.element),
      read: () => (given(share) === null && given(hold) === null ? null : { share_percent: given(share), hold_ms: given(share) === 0 ? given(hold) ?? 0 : given(hold) }),
      write: (value) => { share.input.value = value?.share_percent ?? ""; hold.input.value = value?.hold_ms ?? ""; },
    };
  };
  const enabled = checkbox("enabled", t("field.enabled"), rule.enabled);
  enabled.input.disabled = disabled;
  return {
    name: text("name", {}, t("hint.name")),
    ...(isSelector(rule) ? selectorFields(rule, disabled, changed) : {
      scope: choice("scope", SCOPES.map((name) => [name, t(`scope.${name}`)])),
      identifier_pattern: text("identifier_pattern", { required: true }, t("hint.pattern")),
    }),
    limit: isSelector(rule) ? planLimit(rule, disabled, changed) : amount("limit", t("hint.limit")),
    window_seconds: amount("window_seconds"),
    algorithm: choice("algorithm", ALGORITHMS.map((name) => [name, t(`algorithm.${name}`)])),
    burst: amount("burst", t("hint.burst")),
    fail_mode: choice("fail_mode", [["", t("fail_mode.default")], ...FAIL_MODES.map((name) => [name, t(`fail_mode.${name}`)])], t("hint.fail_mode")),
    lease: lease(),
    enabled: { element: enabled.element, read: () => enabled.input.checked, write: (value) => { enabled.input.checked = value; } },
  };
}

function reading(inputs) {
  return Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.read()]));
}
