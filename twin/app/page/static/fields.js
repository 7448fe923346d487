// A form for the fields of a family: sliders with exact inputs, selects, checkboxes, texts.

import { element, options } from "./element.js";
import { slider } from "./slider.js";
import { capital, label, told } from "./words.js";

const GROUPS = [["workload", "Workload"], ["load", "Load"], ["platform", "Machine"]];
const NOT_TOLD = "not told";

const isNumeric = (field) => field.kind === "integer" || field.kind === "number";
/** Names and ratings say which machine it is; a planner seldom turns them. */
const isRare = (field) => field.part !== "load" && !field.slider && !field.choices.length && field.kind !== "flag";

const placeholder = (field) => {
  if (field.default !== null && field.default !== undefined) return `${told(field.default)} by default`;
  return field.required ? null : NOT_TOLD;
};

const numberControl = (field, changed) => {
  const input = element("input", {
    id: `field-${field.name}`, type: "number", step: "any", required: field.required, placeholder: placeholder(field),
  });
  const exact = element("span", { class: "with-unit" }, [input, field.unit && element("span", {}, field.unit)]);
  const sliding = field.slider && slider(field, (value, event) => {
    input.value = value;
    changed(value, event);
  });
  input.addEventListener("input", (event) => {
    sliding?.put(input.value);
    // what is no number reads as empty here, and must not pass as not told
    const empty = input.validity.badInput ? "not a number" : "";
    changed(input.value === "" ? empty : Number(input.value), event);
  });
  const write = (value) => {
    input.value = value ?? "";
    sliding?.put(value ?? "");
  };
  return { head: exact, foot: sliding?.range, write, input };
};

const choiceControl = (field, changed) => {
  const isFlag = field.kind === "flag";
  const values = isFlag ? [["true", "yes"], ["false", "no"]] : field.choices.map((one) => [one, told(one)]);
  const empty = field.required || field.default !== null ? [] : [["", NOT_TOLD]];
  const input = element("select", { id: `field-${field.name}` }, options([...empty, ...values]));
  input.addEventListener("input", (event) =>
    changed(isFlag && input.value ? input.value === "true" : input.value, event));
  return { head: input, write: (value) => { input.value = String(value ?? field.default ?? ""); }, input };
};

const flagControl = (field, changed) => {
  const input = element("input", { id: `field-${field.name}`, type: "checkbox" });
  input.addEventListener("input", (event) => changed(input.checked, event));
  return { head: input, write: (value) => { input.checked = value ?? field.default ?? false; }, input };
};

const textControl = (field, changed) => {
  const input = element("input", {
    id: `field-${field.name}`, type: "text", class: "long", required: field.required, placeholder: placeholder(field),
  });
  input.addEventListener("input", (event) => changed(input.value, event));
  return { head: input, write: (value) => { input.value = value ?? ""; }, input };
};

const controlOf = (field) => {
  if (isNumeric(field)) return numberControl;
  const mayBeUntold = !field.required && field.default === null;
  if (field.kind === "flag" && !mayBeUntold) return flagControl;
  return field.choices.length || field.kind === "flag" ? choiceControl : textControl;
};

const isRepeated = (field) => field.description.toLowerCase() === label(field.name).toLowerCase();

const row = (field, changed) => {
  const control = controlOf(field)(field, (value, event) => changed(field.name, value, event));
  const says = `says-${field.name}`;
  control.input.setAttribute("aria-describedby", says);
  control.node = element("div", { class: "parameter", "data-field": field.name, title: field.name }, [
    element("div", { class: "line" }, [
      element("label", { for: control.input.id }, capital(label(field.name))),
      control.head,
    ]),
    control.foot,
    element("p", { id: says, class: isRepeated(field) ? "unseen" : "says" }, field.description),
  ]);
  return control;
};

/** `changed(name, value, event)` is told of every input; an empty value means not told. */
export const parameterFields = (place, changed) => {
  let controls = new Map();
  return {
    build(family) {
      const { fields } = family;
      controls = new Map(fields.map((field) => [field.name, row(field, changed)]));
      const nodes = (some) => some.map((field) => controls.get(field.name).node);
      const common = GROUPS.map(([part, title]) => [
        title, fields.filter((field) => field.part === part && !isRare(field)),
      ]).filter(([, some]) => some.length);
      place.replaceChildren(
        ...common.map(([title, some]) => element("fieldset", {}, [element("legend", {}, title), ...nodes(some)])),
        element("details", {}, [
          element("summary", {}, "Names, versions and ratings"), ...nodes(fields.filter(isRare)),
        ]),
      );
    },
    /** What is being typed in stays as it is. */
    write(configuration, except) {
      for (const [name, control] of controls) if (name !== except) control.write(configuration[name]);
    },
    /** Brings a field before the reader's eyes. */
    point(name) {
      const control = controls.get(name);
      control?.node.closest("details")?.setAttribute("open", "");
      control?.input.focus();
    },
  };
};
