// The answer for the configuration as it stands: in large figures, by predictor, by resource.

import { bestAnswer, isTold } from "./curve.js";
import { byId, element } from "./element.js";
import { figure, interval, percent, signedPercent } from "./words.js";

const headline = (curve) => {
  const { here, metric } = curve;
  const best = bestAnswer(curve);
  if (best.excuse) return [element("h2", {}, "No answer"), element("p", { class: "excuse" }, best.excuse)];
  return [
    element("h2", { class: "large" }, [
      element("strong", {}, figure(best.value)), element("span", {}, ` ${metric.unit ?? ""}`),
    ]),
    element("p", {}, `90%: ${interval(best.lo90, best.hi90)}`),
    here.bottleneck ? element("p", {}, ["limited by ", element("b", {}, here.bottleneck)]) : null,
    typeof here.response_ms === "number" && metric.name !== "response_ms" ? element("p", {}, [
      "response time ", element("b", {}, `${figure(here.response_ms)} ms`),
      here.offered_rate_msgs_per_s ? ` at ${figure(here.offered_rate_msgs_per_s)} msgs/s` : " at the highest rate",
    ]) : null,
  ];
};

const doubt = ({ here }) => (here.in_domain !== false ? null : element("p", { class: "warning" }, [
  element("b", {}, "Outside what was measured. "), here.domain_reason ?? "",
]));

const difference = (answer, best) => (isTold(best) ? 100 * (answer.value / best.value - 1) : null);

const predictorRow = (name, answer, best) => element("tr", {}, [
  element("th", { scope: "row", class: `line-${name}` }, name),
  ...(!isTold(answer) ? [element("td", { colspan: 3, class: "excuse" }, answer.excuse ?? "…")] : [
    element("td", { class: "number" }, figure(answer.value)),
    element("td", { class: "number" }, interval(answer.lo90, answer.hi90, "–")),
    element("td", { class: "number" }, answer === best ? "" : signedPercent(difference(answer, best))),
  ]),
]);

const predictors = (curve) => element("table", { class: "compact" }, [
  element("caption", {}, "Who says what"),
  element("thead", {}, element("tr", {}, [
    element("th", { scope: "col" }, "by"),
    ...[curve.metric.unit ?? "value", "90%", "diff."].map((text) =>
      element("th", { scope: "col", class: "number" }, text)),
  ])),
  element("tbody", {}, Object.entries(curve.here.answers).map(([name, answer]) =>
    predictorRow(name, answer, bestAnswer(curve)))),
]);

const bar = (resource, share, isBottleneck) => {
  const fill = element("span", { class: "fill" });
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  return element("li", { class: isBottleneck ? "bottleneck" : null }, [
    element("span", {}, isBottleneck ? `${resource} (limits)` : resource),
    element("span", { class: "bar", "aria-hidden": "true" }, fill),
    element("span", { class: "number" }, percent(100 * share)),
  ]);
};

const resources = ({ here }) => {
  const shares = Object.entries(here.utilisation ?? {}).sort(([, one], [, other]) => other - one);
  if (!shares.length) return [];
  return [
    element("h3", {}, "How busy the resources are"),
    element("ul", { class: "bars" }, shares.map(([name, share]) => bar(name, share, name === here.bottleneck))),
  ];
};

export const showAnswer = (curve) => {
  byId("headline").replaceChildren(...headline(curve).filter(Boolean));
  byId("answer").replaceChildren(...[doubt(curve), predictors(curve), ...resources(curve)].filter(Boolean));
};
