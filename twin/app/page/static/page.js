// Puts the parts together: what is known, the header, and which part is shown.

import { get } from "./api.js";
import { batch } from "./batch.js";
import { byId, element } from "./element.js";
import { findings } from "./findings.js";
import { sizing } from "./sizing.js";
import { createState } from "./state.js";
import { whatIf } from "./whatif.js";
import { capital } from "./words.js";

const TITLES = { whatif: "What if", sizing: "Sizing", batch: "Batch", findings: "Findings" };
const LINKS = [
  ["airflow", "Airflow", "not running"], ["mlflow", "MLflow", "not running"],
  ["data_docs", "Data Docs", "not built"], ["book", "Book", "not built"],
];

const showHeader = ({ model, links }) => {
  byId("links").append(...LINKS.map(([name, title, missing]) => element("li", {}, links[name]
    ? element("a", { href: links[name] }, title)
    : element("span", { class: "muted" }, `${title}: ${missing}`))));
  byId("model").textContent = model ? `model ${model.version}, table ${model.table_version}` : "no model";
};

/** Without a model the forms could only fail: each part says what to do instead. */
const withoutModel = (problem) => {
  const part = (name) => {
    byId(`${name}-panel`).replaceChildren(
      element("h1", {}, TITLES[name]), element("p", { class: "card warning" }, problem),
    );
    return { shown() {} };
  };
  return { whatif: part("whatif"), sizing: part("sizing"), batch: part("batch"), findings: findings() };
};

const withModel = (home) => {
  const state = createState(home);
  return { whatif: whatIf(home, state), sizing: sizing(home, state), batch: batch(home), findings: findings() };
};

const follow = (parts) => {
  let current = null;
  const show = () => {
    const asked = location.hash.slice(1);
    const name = Object.hasOwn(parts, asked) ? asked : "whatif";
    if (name === current) return;
    parts[current]?.hidden?.();
    current = name;
    for (const one of Object.keys(parts)) byId(`${one}-panel`).hidden = one !== name;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${TITLES[name]} · brokertwin`;
    scrollTo(0, 0);
    parts[name].shown();
  };
  addEventListener("hashchange", show);
  show();
};

const sayFailure = (refusal) => byId("loading").replaceChildren(
  element("p", {}, capital(refusal.message)),
  element("button", { type: "button", onclick: () => location.reload() }, "Try again"),
);

const start = (home) => {
  byId("loading").hidden = true;
  showHeader(home);
  follow(home.model ? withModel(home) : withoutModel(home.problem));
};

get("/api/home").then(start, sayFailure);
