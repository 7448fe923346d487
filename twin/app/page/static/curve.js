// What a curve says, apart from how it is drawn: whom to believe, where there are answers, all of it in words.

import { element } from "./element.js";
import { figure, interval, label, told, withUnit } from "./words.js";

/** The predictors come with the one to believe first; some figures only physics tells. */
export const believed = ({ here }) => Object.keys(here.answers)[0];

export const bestAnswer = (curve) => curve.here.answers[believed(curve)];

export const isTold = (answer) => answer?.value !== undefined;

/** Whether the x axis has names instead of numbers. */
export const hasNames = ({ along }) => along.kind === "flag" || along.kind === "text";

/** Runs of points with an answer: what nobody can tell must not be bridged. */
export const runs = (curve) => curve.points.reduce((found, { x, answers }) => {
  const answer = answers[believed(curve)];
  if (isTold(answer)) found.at(-1).push({ x, ...answer });
  else found.push([]);
  return found;
}, [[]]).filter((run) => run.length);

export const axisTitle = ({ name, unit }) => withUnit(label(name), unit && `(${unit})`);

/** One sentence for those who listen to the page. */
export const answerInWords = (curve) => {
  const best = bestAnswer(curve);
  if (best.excuse) return `No answer: ${best.excuse}`;
  const limit = curve.here.bottleneck ? `, limited by ${curve.here.bottleneck}` : "";
  return `${withUnit(figure(best.value), curve.metric.unit)}, 90% ${interval(best.lo90, best.hi90)}${limit}`;
};

export const curveInWords = (curve) => {
  const { along, metric, measured } = curve;
  const answered = runs(curve).flat();
  if (!answered.length) return "No curve: nobody can tell this along that field";
  const point = ({ x, value }) => `${withUnit(figure(value), metric.unit)} at ${withUnit(told(x), along.unit)}`;
  const ends = `from ${point(answered[0])} to ${point(answered.at(-1))}`;
  const points = measured.length ? `; ${measured.length} measured` : "";
  return `${label(metric.name)} along ${label(along.name)}: ${ends}${points}`;
};

const limitsByName = (points) => {
  const names = new Map();
  for (const { x, bottleneck } of points) names.set(bottleneck, [...(names.get(bottleneck) ?? []), told(x)]);
  const parts = [...names].map(([bottleneck, some]) => `${bottleneck} (${some.join(", ")})`);
  return `Limited by ${parts.join("; ")}.`;
};

/** What limits the rate along the curve. */
export const limitsInWords = ({ along, points, turns }) => {
  const limited = points.filter(({ bottleneck }) => bottleneck);
  if (!limited.length) return "";
  if (limited.every(({ bottleneck }) => bottleneck === limited[0].bottleneck)) {
    return `Limited by ${limited[0].bottleneck} all along.`;
  }
  if (!turns.length) return limitsByName(limited);
  const parts = turns.map(({ at, after }) => `from ${withUnit(told(at), along.unit)} on by ${after}`);
  return `Limited by ${turns[0].before}, ${parts.join(", ")}.`;
};

export const figuresTable = (curve) => {
  const names = Object.keys(curve.here.answers);
  const best = believed(curve);
  const said = ({ excuse, value } = {}) => (excuse ? element("span", { class: "excuse" }, excuse) : figure(value));
  const head = [axisTitle(curve.along), ...names, `90% of ${best}`, "limited by"];
  return element("table", {}, [
    element("thead", {}, element("tr", {}, head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, curve.points.map(({ x, answers, bottleneck }) => element("tr", {}, [
      element("th", { scope: "row" }, told(x)),
      ...names.map((name) => element("td", {}, said(answers[name]))),
      element("td", {}, interval(answers[best]?.lo90, answers[best]?.hi90)),
      element("td", {}, bottleneck ?? "–"),
    ]))),
  ]);
};
