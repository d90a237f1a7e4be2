// The rules that match a subject, and its usage.

import { get, post, withQuery } from "./api.js";
import { meter } from "./bars.js";
import { confirm } from "./dialog.js";
import { announce, h } from "./dom.js";
import { clear, complain, field, notice, reasonField, said, select } from "./form.js";
import { limit, number, time } from "./format.js";
import * as holders from "./holders.js";
import { t } from "./messages.js";
import { boost, end } from "./overrides.js";
import { link, note } from "./router.js";
import { SCOPES } from "./rules.js";
import { badge } from "./table.js";

export const title = () => t("page.explain");

export async function render(content, { parameters, signal, can }) {
  const scope = select(SCOPES.map((name) => [name, t(`scope.${name}`)]), parameters.get("scope") ?? "user");
  const identifier = h("input", { type: "text", value: parameters.get("identifier") ?? "", required: true, autocomplete: "off", spellcheck: "false" });
  const [problem, found] = [h("div", { role: "alert" }), h("div", {})];
  const look = async () => {
    const asked = { scope: scope.value, identifier: identifier.value };
    note(["explain"], asked);
    clear(form);
    problem.replaceChildren();
    try {
      const seen = await get(withQuery("/api/v1/ratelimit/explain", asked), { signal });
      const held = await holders.load(seen, { can, signal });
      found.replaceChildren(...shown(seen, held, can, look));
      announce(t("found", { count: number(seen.rules.length) }));
    } catch (error) {
      if (signal.aborted) return;
      found.replaceChildren();
      complain(form, problem, error);
    }
  };
  const form = h("form", { class: "filters", novalidate: true, on: { submit: (event) => { event.preventDefault(); look(); } } },
    field("scope", t("scope"), scope), field("identifier", t("identifier"), identifier, t("hint.identifier")),
    h("button", { class: "primary", type: "submit" }, t("explain.look")));
  content.append(h("p", { class: "hint" }, t("explain.hint")), form, problem, found);
  if (identifier.value) await look();
}

function shown(seen, held, can, look) {
  const subject = `${seen.scope}:${seen.identifier}`;
  return [
    h("div", { class: "heading-row" }, h("h2", { class: "long" }, subject),
      can("reset_counters") ? h("button", { type: "button", class: "danger", on: { click: () => reset(seen, look) } }, t("explain.reset")) : null),
    h("p", { class: "hint" }, t("overview.revision", { revision: number(seen.revision) })),
    h("ol", { class: "explained" }, seen.rules.map((rule) => one(rule, held, can, seen, look))),
  ];
}

function one(rule, { found, problem }, can, seen, look) {
  const name = rule.rule_id && can("read_rules") ? h("a", { href: link(["rules", rule.rule_id]) }, rule.rule_name) : rule.rule_name;
  const known = rule.remaining !== undefined;
  const used = rule.used ?? rule.limit - (rule.remaining ?? 0);
  return h("li", { class: rule.applies ? "card applies" : "card" },
    h("div", { class: "heading-row" }, h("h3", { class: "long" }, name), badge(t(rule.applies ? "explain.applies" : "explain.idle"), rule.applies ? "good" : "off")),
    h("p", {}, t(`match.${rule.match}`), rule.identifier_pattern ? [" ", h("code", { class: "long" }, rule.identifier_pattern)] : "", " — ", limit(rule), ", ", t(`algorithm.${rule.algorithm}`)),
    h("p", { class: "hint" }, rule.why),
    rule.limit_why ? h("p", { class: "hint" }, rule.limit_why) : null,
    rule.override?.until ? h("p", {}, t("overrides.until"), " ", time(rule.override.until)) : null,
    known ? [meter({ used, limit: rule.limit, label: t("used") }),
      h("p", {}, t("explain.standing", { used: number(used), remaining: number(rule.remaining) }),
        rule.reset_at ? [" · ", t("explain.whole"), " ", time(new Date(rule.reset_at * 1000).toISOString())] : "")]
      : h("p", { class: "hint" }, t("explain.unused")),
    rule.applies && rule.algorithm === "concurrency" ? (found.has(rule.rule_id) ? holders.list(found.get(rule.rule_id), seen, { can, look }) : problem && notice(problem)) : null,
    rule.held ? h("p", {}, t("explain.held", { units: number(rule.held.units) }), " ", time(rule.held.until)) : null,
    rule.applies && rule.rule_id && can("write_rules") ? h("div", { class: "actions" }, rule.override
      ? act(t("overrides.end"), t("overrides.was_ended"), () => end(rule.override), look)
      : act(t("overrides.boost"), t("overrides.was_boosted"), () => boost(rule, { [seen.scope]: seen.identifier }), look)) : null);
}

/** A button that acts at once. */
function act(label, done, change, look) {
  const problem = h("span", { role: "alert" });
  const click = async (event) => {
    event.target.disabled = true;
    try {
      await change();
      announce(done);
      await look();
    } catch (error) {
      problem.replaceChildren(notice(said(error)));
      event.target.disabled = false;
    }
  };
  return [h("button", { type: "button", on: { click } }, label), problem];
}

async function reset(seen, look) {
  const reason = reasonField();
  const done = await confirm({
    title: t("explain.reset"), text: t("explain.reset_text", { subject: `${seen.scope}:${seen.identifier}` }), body: reason.element, yes: t("reset"), danger: true,
    act: () => post("/api/v1/ratelimit/reset", { scope: seen.scope, identifier: seen.identifier, reason: reason.input.value }),
  });
  if (done) {
    announce(t("explain.was_reset"));
    await look();
  }
}
