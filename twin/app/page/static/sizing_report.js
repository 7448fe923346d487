// What a sizing found: the cheapest in a sentence, what else holds, what does not and why, what buys most.

import { element, table } from "./element.js";
import { changesInWords, counted, figure, percent, signedPercent, whole } from "./words.js";

const FEW = 12;

const asItStands = (changes) => (Object.keys(changes).length ? changesInWords(changes) : "as it stands");
const holdsFor = (option) => (option.months === null ? "" : `${figure(Number(option.months.toFixed(1)))} months`);

const inBoxes = (option) => `${counted(option.boxes, "box", "boxes")}, ${asItStands(option.changes)}`;

const verdict = (said) => {
  const goal = `${figure(said.target)} msgs/s with ${percent(100 * said.confidence)} confidence`;
  const best = said.accepted[0];
  const asked = said.asked.holds
    ? `As it stands, one box holds it${said.asked.months === null ? "" : `, for ${holdsFor(said.asked)}`}; `
      + `it costs ${whole(said.asked.cost)} ${said.currency}.`
    : `As it stands, one box does not: ${said.asked.reason}.`;
  if (!best) {
    return [element("h2", {}, `None of ${whole(said.examined)} options holds ${goal}`), element("p", {}, asked)];
  }
  const growth = `At ${percent(said.growth_pct)} growth a month it holds for`;
  const lasts = best.months === null ? "" : ` ${growth} ${holdsFor(best)}.`;
  const unlooked = said.dearer ? ` ${counted(said.dearer, "dearer option")} were not looked at.` : "";
  return [
    element("h2", {}, `The cheapest that holds ${goal}: ${inBoxes(best)}, for ${whole(best.cost)} ${said.currency}`),
    element("p", {}, `It should reach ${figure(best.rate)} msgs/s, and ${figure(best.sure_rate)} at that confidence; `
      + `busiest is ${best.busiest ?? "nothing known"} at ${percent(best.busiest_pct)}.${lasts} ${asked}${unlooked}`),
  ];
};

const common = (said) => [
  { heading: "Boxes", class: "number", cell: ({ boxes }) => whole(boxes) },
  { heading: "Change", class: "words", cell: ({ changes }) => asItStands(changes) },
  { heading: `Cost (${said.currency})`, class: "number", cell: ({ cost }) => whole(cost) },
  { heading: "Rate (msgs/s)", class: "number", cell: ({ rate }) => figure(rate) },
  { heading: `At ${percent(100 * said.confidence)}`, class: "number", cell: ({ sure_rate }) => figure(sure_rate) },
];

const acceptedTable = (said, look) => table("What holds, cheapest first", [
  ...common(said),
  { heading: "Busiest", cell: ({ busiest, busiest_pct }) => (busiest ? `${busiest} ${percent(busiest_pct)}` : "–") },
  { heading: "Holds for", cell: (option) => holdsFor(option) || "–" },
  { heading: "Closer", cell: (option) => element("button", { type: "button", onclick: () => look(option.changes) },
    ["Look at it", element("span", { class: "unseen" }, `: ${inBoxes(option)}`)]) },
], said.accepted);

const rejectedTable = (caption, said, some) => table(caption, [
  ...common(said), { heading: "Why not", class: "words", cell: ({ reason }) => reason },
], some);

/** The dearest of the cheaper ones come closest to holding: they are what a planner asks about first. */
const rejectedTables = (said) => {
  const limit = said.accepted[0]?.cost ?? Infinity;
  const cheaper = said.rejected.filter(({ cost }) => cost < limit).toReversed();
  const first = cheaper.slice(0, FEW);
  const others = [...cheaper.slice(FEW), ...said.rejected.filter(({ cost }) => cost >= limit)];
  return [
    first.length ? rejectedTable("Cheaper, but does not hold", said, first) : null,
    others.length ? element("details", { class: "card" }, [
      element("summary", {}, `${counted(others.length, "other")} that do not hold, each with its reason`),
      rejectedTable("Others that do not hold", said, others),
    ]) : null,
  ];
};

const reasonsTable = (said) => table("Reasons", [
  { heading: "Reason", cell: ({ reason }) => reason },
  { heading: "Options", class: "number", cell: ({ options: count }) => whole(count) },
], said.rejected_by_reason);

const sensitivityTable = (said) => table("Which change buys most", [
  { heading: "Change", cell: ({ change }) => asItStands(change) },
  {
    heading: "Rate (msgs/s)", class: "number",
    cell: ({ rate, excuse }) => (excuse ? element("span", { class: "excuse" }, excuse) : figure(rate)),
  },
  { heading: "Gain", class: "number", cell: ({ gain_pct }) => signedPercent(gain_pct) },
  { heading: `Extra cost (${said.currency})`, class: "number", cell: ({ extra_cost }) => whole(extra_cost) },
  { heading: "Gain per 1,000", class: "number", cell: ({ gain_pct_per_1000: gain }) => signedPercent(gain) },
], said.sensitivity);

/** `look` is told the changes of the option to be looked at more closely. */
export const sizingReport = (said, look) => [
  element("section", { class: "card verdict" }, verdict(said)),
  ...[
    said.accepted.length && acceptedTable(said, look),
    element("div", { class: "beside" }, [
      said.sensitivity.length ? sensitivityTable(said) : null,
      said.rejected_by_reason.length ? reasonsTable(said) : null,
    ]),
    ...rejectedTables(said),
  ].filter(Boolean),
];
