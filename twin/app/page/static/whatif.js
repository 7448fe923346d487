// The what-if part: a start, parameters, and everything that follows when one of them moves.

import { noAdvice, showAdvice } from "./advice.js";
import { showAnswer } from "./answer.js";
import { get, latestOf } from "./api.js";
import { curveChart } from "./chart.js";
import { answerInWords } from "./curve.js";
import { byId, element, familyOptions, options, speak } from "./element.js";
import { parameterFields } from "./fields.js";
import { measuredPicker, nameOf } from "./measured.js";
import { showProblems } from "./problems.js";
import { alongFields, changed } from "./state.js";
import { capital, changesInWords, label } from "./words.js";

const REST_MS = 250;
const FEW = 4;

const exampleInWords = (configuration, { example, fields }) => {
  const changes = fields.filter(({ name }) => configuration[name] !== example[name])
    .map(({ name }) => [name, configuration[name]]);
  const few = changesInWords(Object.fromEntries(changes.slice(0, FEW)));
  const more = changes.length > FEW ? ` and ${changes.length - FEW} more` : "";
  return changes.length ? `The system's example with ${few}${more}.` : "The system's example.";
};

export const whatIf = (home, state) => {
  const form = byId("parameters");
  const chart = curveChart();
  let rest = null;
  let built = null;
  let visible = false;
  let drawn = 0;
  let refused = false;
  let sentence = "";

  /** Who tells a metric; those that were not asked while a slider moves have said nothing yet. */
  const withSilent = ({ metric, here: { answers } }) => {
    const names = home.model.targets.includes(metric.name) ? home.model.predictors : Object.keys(answers);
    return Object.fromEntries(names.map((name) => [name, answers[name] ?? {}]));
  };

  const curveAsker = latestOf("/api/curve", {
    async show(curve, { x, since }) {
      refused = false;
      showProblems(form, []);
      curve.here.answers = withSilent(curve);
      showAnswer(curve);
      for (const { value, parentNode } of lineBoxes()) parentNode.hidden = !(value in curve.here.answers);
      if (curve.along) await chart.show(curve, state.now.lines, x);
      chart.stale(!curve.along);
      if (since) {
        // the time from the reader's hand to the new picture, for whoever measures the page
        performance.measure("redraw", { start: since, end: performance.now() });
        document.documentElement.dataset.drawn = ++drawn;
      }
      sentence = answerInWords(curve);
      if (!rest) speak(sentence);
    },
    refuse({ problems }) {
      refused = true;
      showProblems(form, problems);
      chart.stale(true);
    },
  });

  const tryIt = (changes) => {
    state.change({ configuration: changed(state.now.configuration, changes) });
    fields.point(Object.keys(changes)[0]);
  };

  const adviceAsker = latestOf("/api/advice", {
    show: (said) => showAdvice(said, tryIt),
    refuse: ({ message }) => noAdvice(message),
  });

  const question = (predictors, since) => {
    const { configuration, along, metric } = state.now;
    return [{ configuration, along, metric, predictors }, { x: configuration[along], since }];
  };

  /** Who is drawn answers at once; the others, who take longer, when things rest. */
  const ask = (since = performance.now()) => {
    curveAsker.ask(...question([home.model.predictors[0], ...state.now.lines], since));
    clearTimeout(rest);
    rest = setTimeout(() => {
      rest = null;
      state.remember();
      speak(sentence);
      if (refused) return;
      curveAsker.askWhenIdle(...question([], null));
      adviceAsker.ask({ configuration: state.now.configuration });
    }, REST_MS);
  };

  const fields = parameterFields(byId("fields"), (name, value, event) => {
    const configuration = changed(state.now.configuration, { [name]: value });
    state.change({ configuration }, { typed: name, since: event.timeStamp });
  });

  const start = (configuration, id) => {
    curveAsker.forget();
    adviceAsker.forget();
    // another family has other metrics; those that it shares may not be what it is about
    const kept = configuration.family === state.family.family ? {} : { along: null, metric: null };
    state.change({ configuration, start: id, ...kept });
    form.scrollTop = 0;
  };

  const showStart = () => {
    const row = home.measured.find(({ configuration_id }) => configuration_id === state.now.start);
    byId("started").textContent = row
      ? `Started from ${nameOf(row)}.`
      : exampleInWords(state.now.configuration, state.family);
  };

  const build = (family) => {
    built = family;
    fields.build(family);
    byId("metric").replaceChildren(...options(family.metrics.map(({ name }) => [name, label(name)])));
    byId("along").replaceChildren(...options(alongFields(family).map(({ name }) => [name, label(name)])));
  };

  const lineBoxes = () => [...byId("lines").querySelectorAll("input")];

  const chooseLines = () => {
    const lines = lineBoxes().filter(({ checked }) => checked).map(({ value }) => value);
    state.change({ lines }, { linesOnly: true });
  };

  const lineBox = (name) => element("label", { class: `line-${name}` }, [
    element("input", {
      type: "checkbox", value: name, checked: state.now.lines.includes(name), onchange: chooseLines,
    }), name,
  ]);

  const show = (cause) => {
    const { now, family } = state;
    if (built !== family) build(family);
    fields.write(now.configuration, cause.typed);
    byId("family").value = family.family;
    byId("metric").value = now.metric;
    byId("along").value = now.along;
    showStart();
    ask(cause.since);
  };

  state.onChange((now, cause) => {
    if (cause.linesOnly) {
      chart.relined(now.lines);
      state.remember();
    } else if (visible) show(cause);
  });

  byId("family").append(...familyOptions(home.families));
  byId("family").addEventListener("change", ({ target }) =>
    start({ ...home.families.find(({ family }) => family === target.value).example }, null));
  byId("metric").addEventListener("change", ({ target }) => state.change({ metric: target.value }));
  byId("along").addEventListener("change", ({ target }) => state.change({ along: target.value }));
  for (const one of [form, byId("start")]) one.addEventListener("submit", (event) => event.preventDefault());
  measuredPicker(home.measured, ({ configuration_id: id }) => get(`/api/configurations/${id}`).then(
    ({ configuration }) => start(configuration, id),
    ({ message }) => { byId("started").textContent = capital(message); },
  ));
  byId("lines").append(
    ...home.model.predictors.map(lineBox),
    element("span", { class: "line-measured" }, "measured"),
    element("span", { class: "line-here" }, "here"),
  );

  return {
    shown() {
      visible = true;
      show({});
    },
    hidden() { visible = false; },
  };
};
