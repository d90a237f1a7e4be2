// Localized numbers and times.

import { h } from "./dom.js";
import { language, t } from "./messages.js";

const whole = new Intl.NumberFormat(language);
const short = new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 });
const one = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
const local = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(language, { timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });

export const number = (value) => whole.format(value);
export const compact = (value) => (Math.abs(value) < 10_000 ? one.format(value) : short.format(value));
export const percent = (value) => `${one.format(value)} %`;
export const clockTime = (milliseconds) => clock.format(new Date(milliseconds));

/** Formats microseconds with a suitable unit. */
export function micros(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return `${one.format(value)} µs`;
  return value < 1_000_000 ? `${one.format(value / 1000)} ms` : `${one.format(value / 1_000_000)} s`;
}

const UNITS = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];

/** Formats seconds in the largest unit that divides them. */
export function seconds(value) {
  const [unit, size] = UNITS.find(([, size]) => value % size === 0 && value >= size) ?? ["s", 1];
  // Keep a number and its unit on one line.
  return `${number(value / size)}\u00a0${t(`unit.${unit}`)}`;
}

/** Formats a relative time. */
export function ago(milliseconds) {
  const away = milliseconds / 1000;
  const [unit, size] = [["day", 86_400], ["hour", 3600], ["minute", 60]].find(([, size]) => Math.abs(away) >= size) ?? ["second", 1];
  return relative.format(Math.round(away / size), unit);
}

/** A local time with UTC as its tooltip. */
export function time(text, { near = false } = {}) {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return h("span", {}, String(text));
  const utc = `${moment.toISOString().replace("T", " ").replace("Z", "")} UTC`;
  const shown = near ? ago(moment.getTime() - Date.now()) : local.format(moment);
  const title = near ? `${local.format(moment)}\n${utc}` : utc;
  return h("time", { datetime: moment.toISOString(), title }, shown);
}

/** Formats a limit and its window. */
export function limit(rule) {
  if (typeof rule.limit === "object") {
    const { by, ...values } = rule.limit;
    const all = Object.entries(values).map(([value, units]) => `${value} ${number(units)}`).join(", ");
    return t("limit.by", { limits: all, by, window: seconds(rule.window_seconds) });
  }
  const text = rule.algorithm === "concurrency" ? "limit.at_once" : "limit.per";
  return t(text, { limit: number(rule.limit), window: seconds(rule.window_seconds) });
}
