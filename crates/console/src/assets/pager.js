// Pagination.

import { h } from "./dom.js";
import { number } from "./format.js";
import { t } from "./messages.js";

/** Buttons for the previous and next page; `go` is called with the page number. */
export function pager({ page, page_size, total_count, has_next }, go) {
  const pages = Math.max(1, Math.ceil(total_count / page_size));
  const button = (words, to, enabled) => h("button", { type: "button", disabled: !enabled, on: { click: () => go(to) } }, words);
  return h("nav", { class: "pager", "aria-label": t("pages") },
    button(t("page.previous"), page - 1, page > 1),
    h("span", {}, t("page.of", { page: number(page), pages: number(pages), total: number(total_count) })),
    button(t("page.next"), page + 1, has_next));
}
