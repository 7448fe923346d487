// What the reports advise against the bottleneck, and what the twin says it would bring here.

import { byId, element } from "./element.js";
import { changesInWords, figure, interval, label, signedPercent, withUnit } from "./words.js";

const brings = (one) => {
  if (one.after === null) return element("p", { class: "excuse" }, `Cannot tell: ${one.excuse}`);
  // where there is no answer to the configuration as it stands there is nothing to compare with
  const faster = one.gain_pct === null ? null
    : element("b", { class: one.gain_pct > 0 ? "gain" : null }, `${signedPercent(one.gain_pct)} faster: `);
  return element("p", {}, [
    faster,
    `${label(one.metric)} ${figure(one.before)} → ${withUnit(figure(one.after), one.unit)}`,
    `, 90% ${interval(one.lo90, one.hi90)}`,
    one.bottleneck ? `, then limited by ${one.bottleneck}` : "",
  ]);
};

const card = (one, tryIt) => element("li", { class: "advice" }, [
  element("div", {}, [
    element("h3", {}, one.name),
    element("p", {}, one.says),
    brings(one),
    one.sources.length ? element("p", { class: "muted" },
      one.sources.map(({ source_id, line }) => `${source_id} line ${line}`).join(", ")) : null,
  ]),
  one.change ? element("button", { type: "button", onclick: () => tryIt(one.change) }, [
    "Try it", element("span", { class: "unseen" }, `: ${one.name}`), element("small", {}, changesInWords(one.change)),
  ]) : null,
]);

export const showAdvice = ({ bottleneck, advice }, tryIt) => {
  byId("advice-title").textContent = bottleneck ? `What would help: ${bottleneck} limits` : "What would help";
  byId("advice-list").replaceChildren(advice.length
    ? element("ul", {}, advice.map((one) => card(one, tryIt)))
    : element("p", { class: "muted" }, "The reports have no advice for this."));
};

export const noAdvice = (reason) =>
  byId("advice-list").replaceChildren(element("p", { class: "muted" }, reason));
