// Modal dialogs. The browser keeps the focus inside and restores it.

import { h, uniqueId } from "./dom.js";
import { t } from "./messages.js";
import { complain } from "./form.js";

/**
 * Asks for confirmation and calls `act`, whose error is shown in the dialog. Returns whether it succeeded.
 */
export function confirm({ title, text, body, yes, danger = false, act }) {
  return new Promise((resolve) => {
    const [heading, problem] = [uniqueId("dialog"), h("div", { role: "alert" })];
    let done = false;
    const button = h("button", { class: danger ? "danger" : "primary", type: "submit" }, yes);
    const form = h("form", { method: "dialog" },
      h("h2", { id: heading }, title), text ? h("p", {}, text) : null, body ?? null, problem,
      h("div", { class: "actions" }, button,
        h("button", { type: "button", on: { click: () => dialog.close() } }, t("cancel"))));
    const dialog = h("dialog", { "aria-labelledby": heading }, form);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      problem.replaceChildren();
      try {
        await act();
        done = true;
        dialog.close();
      } catch (error) {
        complain(form, problem, error);
      }
      button.disabled = false;
    });
    dialog.addEventListener("close", () => { dialog.remove(); resolve(done); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
