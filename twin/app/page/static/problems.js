// Says what is wrong beside the field that it is about, or else in the form's message area.

import { element } from "./element.js";

const MARK = "field-problem";

const beside = (place, reason) => {
  const control = place.querySelector("input:not([type=range]), select");
  const id = `${control.id}-problem`;
  const told = control.getAttribute("aria-describedby")?.split(" ") ?? [];
  place.append(element("p", { id, class: `problem ${MARK}` }, reason));
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", [...told, id].join(" "));
  place.closest("details")?.setAttribute("open", "");
};

const clear = (form) => {
  for (const mark of form.querySelectorAll(`.${MARK}`)) {
    const control = form.querySelector(`[aria-describedby~="${mark.id}"]`);
    const left = control?.getAttribute("aria-describedby").split(" ").filter((id) => id !== mark.id) ?? [];
    if (left.length) control.setAttribute("aria-describedby", left.join(" "));
    else control?.removeAttribute("aria-describedby");
    control?.removeAttribute("aria-invalid");
    mark.remove();
  }
};

export const showProblems = (form, problems) => {
  clear(form);
  const others = [];
  for (const { field, reason } of problems) {
    const place = field && form.querySelector(`[data-field="${CSS.escape(field)}"]`);
    if (place && !place.querySelector(`.${MARK}`)) beside(place, reason);
    else others.push(field ? `${field}: ${reason}` : reason);
  }
  form.querySelector("[role=alert]").textContent = others.join("; ");
};
