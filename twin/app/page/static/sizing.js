// The form that asks for the cheapest configuration that holds a target.

import { post, Refusal } from "./api.js";
import { byId, element, options, speak } from "./element.js";
import { showProblems } from "./problems.js";
import { sizingReport } from "./sizing_report.js";
import { changed } from "./state.js";
import { capital, label, told } from "./words.js";

const items = (text) => text.split(",").map((item) => item.trim()).filter(Boolean);
const isNumeric = (field) => field?.kind === "integer" || field?.kind === "number";

/** What cannot be read as the field's kind stays a text: the server says what is wrong with it. */
const typed = (field, text) => {
  if (field?.kind === "flag") return { true: true, yes: true, false: false, no: false }[text] ?? text;
  const number = Number(text);
  return isNumeric(field) && Number.isFinite(number) ? number : text;
};

const numberIn = (input) => (input.value === "" ? null : Number(input.value));
/** The server counts from 0 to 1, and would say so. */
const isConfidence = (value) => value >= 50 && value <= 99;

const shortConfiguration = ({ configuration }, family) => {
  const telling = family.fields.filter((field) => field.required && (field.kind !== "text" || field.choices.length));
  return telling.map(({ name }) => `${label(name)} ${told(configuration[name])}`).join(", ");
};

const costField = (name, value) => element("div", { class: "field", "data-field": `costs.${name}` }, [
  element("label", { for: `cost-${name}` }, capital(label(name).replace(".", ": "))),
  element("input", {
    id: `cost-${name}`, name, value, type: typeof value === "number" ? "number" : "text", step: "any", min: 0,
  }),
]);

const costFields = ({ disk, ...others }) => [
  ...Object.entries(others).map(([name, value]) => costField(name, value)),
  ...Object.entries(disk).map(([kind, value]) => costField(`disk.${kind}`, value)),
];

const costsIn = (place) => {
  const costs = { disk: {} };
  for (const input of place.querySelectorAll("input")) {
    const [name, kind] = input.name.split(".");
    if (kind) costs.disk[kind] = numberIn(input);
    else costs[name] = input.type === "number" ? numberIn(input) : input.value;
  }
  return costs;
};

const optionField = (field, values) => element("div", { class: "field", "data-field": `options.${field.name}` }, [
  element("label", { for: `option-${field.name}` }, capital(label(field.name))),
  element("input", {
    id: `option-${field.name}`, name: field.name, type: "text", value: values.join(", "),
    title: field.choices.length ? field.choices.join(", ") : field.description,
  }),
]);

export const sizing = (home, state) => {
  const form = byId("sizing-form");
  const result = byId("sizing-result");
  let prefilled = null;

  const fieldOf = (name) => state.family.fields.find((field) => field.name === name);

  const showMore = () => {
    const there = new Set([...byId("options").querySelectorAll("input")].map(({ name }) => name));
    const free = state.family.fields.filter(({ name }) => !there.has(name));
    byId("more-options").replaceChildren(...options(free.map(({ name }) => [name, label(name)])));
  };

  const prefill = (family) => {
    prefilled = family;
    const values = Object.entries(home.sizing.options[family.family] ?? {}).filter(([name]) => fieldOf(name));
    byId("options").replaceChildren(...values.map(([name, some]) => optionField(fieldOf(name), some)));
    showMore();
    result.replaceChildren();
  };

  const optionsIn = () => Object.fromEntries([...byId("options").querySelectorAll("input")]
    .map(({ name, value }) => [name, items(value).map((item) => typed(fieldOf(name), item))])
    .filter(([, values]) => values.length));

  const question = () => ({
    configuration: state.now.configuration,
    target: numberIn(byId("target")),
    confidence: numberIn(byId("confidence")) / 100,
    ceiling_pct: numberIn(byId("ceiling")),
    one_box_lost: byId("one-box-lost").checked,
    growth_pct: numberIn(byId("growth")),
    boxes: items(byId("boxes").value).map((item) => typed({ kind: "integer" }, item)),
    options: optionsIn(),
    costs: costsIn(byId("costs")),
  });

  /** From the configuration that was sized: what-if may have gone on from there. */
  const lookFrom = (configuration) => (changes) => {
    state.change({ configuration: changed(configuration, changes) });
    location.hash = "#whatif";
  };

  const size = async () => {
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    try {
      if (!isConfidence(numberIn(byId("confidence")))) {
        throw new Refusal([{ field: "confidence", reason: "between 50 and 99" }]);
      }
      const asked = question();
      const said = await post("/api/size", asked);
      showProblems(form, []);
      result.replaceChildren(...sizingReport(said, lookFrom(asked.configuration)));
      speak(result.querySelector("h2").textContent);
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      showProblems(form, refusal.problems);
    } finally {
      button.disabled = false;
    }
  };

  byId("boxes").value = home.sizing.boxes.join(", ");
  byId("costs").replaceChildren(...costFields(home.sizing.costs));
  byId("add-option").addEventListener("click", () => {
    const field = fieldOf(byId("more-options").value);
    const node = optionField(field, field.choices.length ? field.choices : [state.now.configuration[field.name] ?? ""]);
    byId("options").append(node);
    showMore();
    node.querySelector("input").focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    size();
  });

  return {
    shown() {
      if (prefilled !== state.family) prefill(state.family);
      byId("sizing-start").replaceChildren(
        element("b", {}, state.family.title), ` as set under What if: ${shortConfiguration(state.now, state.family)}.`);
    },
  };
};
