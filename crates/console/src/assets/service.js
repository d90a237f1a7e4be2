// A service's document: edited as JSON, with a preview of the changes and what is invalid.

import { get, put } from "./api.js";
import { changed, comparison } from "./diff.js";
import { announce, h } from "./dom.js";
import { clear, complain, field, notice, said, told } from "./form.js";
import { number, time } from "./format.js";
import { t } from "./messages.js";
import { link } from "./router.js";
import { SERVICES } from "./services.js";

export const title = ([, name]) => t("services.one", { name });

export async function render(content, { parts: [, name], signal, can }) {
  const path = `${SERVICES}/${encodeURIComponent(name)}`;
  try {
    edit(content, path, await get(path, { signal }), can);
    content.append(await history(path, signal));
  } catch (error) {
    if (!signal.aborted) content.append(notice(said(error)), h("a", { href: link(["services"]) }, t("services.back")));
  }
}

/** Every value of a document, by the path to it. */
function leaves(value, path = "") {
  if (value === null || typeof value !== "object" || Array.isArray(value) || !Object.keys(value).length) return path ? { [path]: value } : {};
  return Object.assign({}, ...Object.entries(value).map(([name, inner]) => leaves(inner, `${path}/${name}`)));
}

const written = (config) => JSON.stringify(config, null, 2);

function edit(content, path, seen, can) {
  const state = { seen };
  const input = h("textarea", { rows: 18, spellcheck: "false", class: "code", value: written(seen.config), disabled: !can("write_services") });
  const [problem, changes, version] = [h("div", { role: "alert" }), h("div", { class: "changes" }), h("p", { class: "hint" })];
  const save = h("button", { class: "primary", type: "submit" }, t("save"));
  const unchecked = seen.registered ? null : notice(t("services.unregistered"), "info");
  const form = h("form", { class: "editor", novalidate: true }, version, unchecked, field("config", t("services.document"), input, t("services.document_hint")), changes, problem,
    h("div", { class: "actions" }, can("write_services") ? save : null, h("a", { class: "button", href: link(["services"]) }, t("services.back"))));
  const read = () => {
    try {
      return JSON.parse(input.value);
    } catch {
      return null;
    }
  };
  const update = () => {
    const now = read();
    const [was, is] = [leaves(state.seen.config), leaves(now)];
    const names = now ? changed(was, is) : [];
    form.toggleAttribute("data-unsaved", !now || names.length > 0);
    version.replaceChildren(state.seen.version ? t("services.version", { version: number(state.seen.version) }) : t("services.defaults"), ...(state.seen.updated_at ? [" · ", state.seen.updated_by, " · ", time(state.seen.updated_at)] : []));
    changes.replaceChildren(!now ? notice(t("services.no_json")) : names.length ? comparison([[t("before"), was], [t("after"), is]], names, t("rules.changes")) : h("p", { class: "hint" }, t("rules.unchanged")));
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.replaceChildren();
    clear(form);
    const now = read();
    if (!now) return input.focus();
    save.disabled = true;
    try {
      state.seen = await put(path, { config: now, expected_version: state.seen.version });
      announce(t("saved"));
      input.value = written(state.seen.config);
      update();
      problem.replaceChildren(notice(t("services.saved", { version: number(state.seen.version) }), "info"));
    } catch (error) {
      if (error.status === 409) conflict(await get(path), now, { state, input, problem, update });
      else if (error.details?.length) wrong(form, input, problem, error);
      else complain(form, problem, error);
    }
    save.disabled = false;
  });
  content.append(form);
  update();
}

function wrong(form, input, problem, error) {
  input.setAttribute("aria-invalid", "true");
  problem.replaceChildren(notice(t("services.wrong")), h("ul", { class: "problems" }, error.details.map((it) => h("li", {}, h("code", { class: "long" }, it.field || "/"), " ", told(it)))));
  input.focus();
}

function conflict(theirs, mine, { state, input, problem, update }) {
  const [was, now, own] = [leaves(state.seen.config), leaves(theirs.config), leaves(mine)];
  const names = [...new Set([...changed(was, now), ...changed(was, own)])];
  const settle = (config) => {
    state.seen = theirs;
    input.value = written(config);
    problem.replaceChildren();
    update();
    input.focus();
  };
  problem.replaceChildren(notice(t("services.conflict")), comparison([[t("seen"), was], [t("theirs"), now], [t("mine"), own]], names, t("rules.conflict_caption")),
    h("div", { class: "actions" },
      h("button", { type: "button", on: { click: () => settle(mine) } }, t("rules.keep_mine")),
      h("button", { type: "button", on: { click: () => settle(theirs.config) } }, t("rules.take_theirs"))));
}

async function history(path, signal) {
  const { changes } = await get(`${path}/changes`, { signal });
  const entry = (it) => {
    const [was, is] = [leaves(it.diff?.before), leaves(it.diff?.after)];
    return h("li", {}, h("details", {}, h("summary", {}, time(it.at), h("span", { class: "actor-name long" }, it.actor)),
      h("div", { class: "audit-inside" }, comparison([[t("before"), was], [t("after"), is]], changed(was, is), t("rules.changes")))));
  };
  return h("section", {}, h("h2", {}, t("services.changes")), changes.length ? h("ol", { class: "audit" }, changes.map(entry)) : h("p", { class: "empty" }, t("audit.none")));
}
