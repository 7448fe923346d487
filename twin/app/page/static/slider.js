// A native range input over a field's values, in equal ratios where the field spans orders of magnitude.

import { element } from "./element.js";
import { label, told, withUnit } from "./words.js";

const STEPS = 200;

const scaleOf = ({ from, to, log }, whole) => {
  if (!log && whole && to - from <= STEPS) {
    return { steps: to - from, valueAt: (step) => from + step, stepOf: (value) => value - from };
  }
  const ratio = Math.log(to / from);
  const rounded = (value) => {
    const short = Number(value.toPrecision(3));
    return whole ? Math.round(short) : short;
  };
  const inside = (value) => Math.min(to, Math.max(from, value));
  return log
    ? {
      steps: STEPS,
      valueAt: (step) => inside(rounded(from * Math.exp((ratio * step) / STEPS))),
      stepOf: (value) => (STEPS * Math.log(Math.max(value, from) / from)) / ratio,
    }
    : {
      steps: STEPS,
      valueAt: (step) => inside(rounded(from + ((to - from) * step) / STEPS)),
      stepOf: (value) => (STEPS * (value - from)) / (to - from),
    };
};

/** The input, and how to put it where a value is; without a value it is shown as not told. */
export const slider = (field, moved) => {
  const scale = scaleOf(field.slider, field.kind === "integer");
  const range = element("input", {
    type: "range", id: `slide-${field.name}`, min: 0, max: scale.steps, step: 1,
    "aria-label": `${label(field.name)}, slider`,
  });
  const say = (value) => range.setAttribute("aria-valuetext", withUnit(told(value), value === "" ? "" : field.unit));
  range.addEventListener("input", (event) => {
    const value = scale.valueAt(Number(range.value));
    range.classList.remove("untold");
    say(value);
    moved(value, event);
  });
  const put = (value) => {
    const empty = value === "" || value === undefined;
    range.classList.toggle("untold", empty);
    range.value = empty ? 0 : Math.round(Math.min(scale.steps, Math.max(0, scale.stepOf(Number(value)))));
    say(empty ? "" : Number(value));
  };
  return { range, put };
};
