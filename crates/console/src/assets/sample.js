// Shows live whether a rule, as it is in its form, applies to sample attributes.

import { post, Refused } from "./api.js";
import { h } from "./dom.js";
import { field } from "./form.js";
import { number } from "./format.js";
import { t } from "./messages.js";
import { badge } from "./table.js";

const KEY = "headgate.sample";

/** A text with one attribute per line, and the explanation of the rule for it. */
export function sample(signal) {
  const text = h("textarea", { rows: 5, class: "code", spellcheck: "false", autocomplete: "off", placeholder: "tenant=acme\nplan=pro" });
  text.value = sessionStorage.getItem(KEY) ?? "";
  const found = h("div", { "aria-live": "polite" });
  let [timer, latest, rule] = [null, 0, null];
  const look = async () => {
    const mine = ++latest;
    try {
      const seen = await post("/console/try", { rule, attributes: attributes(text.value) }, { signal });
      if (mine === latest) found.replaceChildren(...shown(seen));
    } catch (error) {
      // Errors are shown on save; until then there is nothing to explain.
      if (mine === latest && error instanceof Refused) found.replaceChildren(h("p", { class: "hint" }, t("sample.none")));
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(look, 150);
  };
  text.addEventListener("input", (event) => {
    // Not a change of the rule.
    event.stopPropagation();
    sessionStorage.setItem(KEY, text.value);
    soon();
  });
  return {
    element: h("div", { class: "sample" }, field("sample", t("sample.title"), text, t("hint.sample")), found),
    show(now) {
      rule = { ...now, name: now.name || "sample" };
      soon();
    },
  };
}

/** The attributes of lines such as `tenant=acme`; a name that occurs twice has a list. */
export function attributes(text) {
  const all = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    const name = line.slice(0, at).trim();
    if (at < 1 || !name) continue;
    const value = line.slice(at + 1).trim();
    all[name] = name in all ? [all[name], value].flat() : value;
  }
  return all;
}

function shown(seen) {
  return [
    h("p", {}, badge(t(seen.applies ? "explain.applies" : "explain.idle"), seen.applies ? "good" : "off"), " ",
      seen.applies ? t("sample.limit", { limit: number(seen.limit), subject: seen.subject }) : ""),
    h("p", { class: "hint" }, seen.why),
    seen.limit_why ? h("p", { class: "hint" }, seen.limit_why) : "",
  ];
}
