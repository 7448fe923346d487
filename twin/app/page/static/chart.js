// The curve as Plotly draws it: what the predictors say, what was measured, where the configuration stands.

import {
  axisTitle, believed, bestAnswer, curveInWords, figuresTable, hasNames, isTold, limitsInWords, runs,
} from "./curve.js";
import { byId } from "./element.js";
import { figure, told, withUnit } from "./words.js";

const DASHES = { hybrid: "solid", analytic: "dash", regression: "dot", nearest: "dashdot" };
const CONFIG = { displayModeBar: false, showTips: false, doubleClick: false };

const plotly = () => new Promise((resolve) => {
  if (globalThis.Plotly) resolve(globalThis.Plotly);
  else byId("plotly").addEventListener("load", () => resolve(globalThis.Plotly));
});

/** Plotly reads tags in its texts; the server's words must stay words. */
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const colours = () => {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries([...Object.keys(DASHES), "measured", "text", "muted", "border", "surface"]
    .map((name) => [name, named(name)]));
};

/** Of a colour in hexadecimal digits, as page.css has them. */
const fainter = (colour, share) => `${colour}${Math.round(255 * share).toString(16).padStart(2, "0")}`;

const band = (curve, low, high, colour) => {
  const rings = runs(curve).map((run) => [
    ...run.map((one) => [one.x, one[high]]),
    ...run.toReversed().map((one) => [one.x, one[low]]),
    [null, null],
  ]).flat();
  return {
    x: rings.map(([x]) => x), y: rings.map(([, y]) => y), mode: "lines", fill: "toself", fillcolor: colour,
    line: { width: 0 }, hoverinfo: "skip", name: `${low} to ${high}`,
  };
};

/** Between two names there is nothing: each has its interval as a bar. */
const bars = (curve, low, high, colour) => {
  const answers = runs(curve).flat();
  const from = (end) => answers.map((one) => Math.abs(one[end] - one.value));
  return {
    x: answers.map(({ x }) => x), y: answers.map(({ value }) => value), mode: "markers",
    marker: { size: 1, color: colour }, hoverinfo: "skip", name: `${low} to ${high}`,
    error_y: {
      type: "data", symmetric: false, array: from(high), arrayminus: from(low), color: colour, thickness: 12, width: 0,
    },
  };
};

const line = (curve, predictor, colour) => ({
  x: curve.points.map(({ x }) => x),
  y: curve.points.map(({ answers }) => answers[predictor]?.value ?? null),
  mode: hasNames(curve) ? "markers" : "lines",
  name: predictor,
  line: { color: colour, width: predictor === believed(curve) ? 2.5 : 1.75, dash: DASHES[predictor] },
  marker: { color: colour, size: 9, symbol: predictor === believed(curve) ? "circle" : "diamond-open" },
  text: curve.points.map(({ x, answers, bottleneck }) => plain([
    `${predictor} ${withUnit(figure(answers[predictor]?.value), curve.metric.unit)}`,
    `at ${withUnit(told(x), curve.along.unit)}`,
    bottleneck && `limited by ${bottleneck}`,
  ].filter(Boolean).join(", "))),
  hoverinfo: "text",
});

const measuredPoints = (curve, colour) => ({
  x: curve.measured.map(({ x }) => (hasNames(curve) ? String(x) : x)),
  y: curve.measured.map(({ value }) => value),
  mode: "markers", name: "measured",
  marker: { color: colour.surface, size: 9, line: { color: colour.measured, width: 2 } },
  text: curve.measured.map((one) => [
    `measured ${withUnit(figure(one.value), curve.metric.unit)} (printed ${one.printed})`,
    `${one.source_id}, table ${one.table_label || "–"}, line ${one.line}`,
  ].map(plain).join("<br>")),
  hoverinfo: "text",
});

const hereMark = (curve, x, { value }, colour) => ({
  x: [hasNames(curve) ? String(x) : x], y: [value], mode: "markers", name: "here",
  marker: { symbol: "diamond", size: 14, color: colour[believed(curve)], line: { color: colour.surface, width: 2 } },
  text: [plain(`this configuration: ${withUnit(figure(value), curve.metric.unit)}`)],
  hoverinfo: "text",
});

const traces = (curve, lines, x, colour) => {
  const best = believed(curve);
  const spread = hasNames(curve) ? bars : band;
  const intervals = [
    spread(curve, "lo90", "hi90", fainter(colour[best], .15)),
    spread(curve, "lo50", "hi50", fainter(colour[best], .3)),
  ];
  // the one to believe is drawn last, over the others
  const shown = Object.keys(curve.here.answers).filter((name) => lines.includes(name)).toReversed();
  const here = bestAnswer(curve);
  return [
    ...(lines.includes(best) ? intervals : []),
    ...shown.map((name) => line(curve, name, colour[name])),
    measuredPoints(curve, colour),
    ...(x !== undefined && isTold(here) ? [hereMark(curve, x, here, colour)] : []),
  ];
};

/** A label near an edge goes to the inner side of its line. */
const sideOf = (curve, at) => {
  const place = (x) => (curve.along.log ? Math.log(x) : x);
  const [first, last] = [place(curve.points[0].x), place(curve.points.at(-1).x)];
  const share = (place(at) - first) / (last - first);
  if (share < .3) return "left";
  return share > .7 ? "right" : "center";
};

const turnMarks = (curve, colour) => ({
  shapes: curve.turns.map(({ at }) => ({
    type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: colour.muted, width: 1, dash: "dot" },
  })),
  annotations: curve.turns.map(({ at, before, after }, number) => ({
    // an annotation on a logarithmic axis is placed by the logarithm
    x: curve.along.log ? Math.log10(at) : at,
    yref: "paper", y: 1, yanchor: "bottom", yshift: 14 * (number % 2), xanchor: sideOf(curve, at),
    text: plain(`${before} → ${after}`), font: { size: 11, color: colour.muted }, showarrow: false,
  })),
});

const isAnswered = (curve) => curve.points.some(({ answers }) => Object.values(answers).some(isTold));

const nothingToDraw = (colour) => ({
  annotations: [{
    text: "Nobody can tell this along that field", showarrow: false, xref: "paper", yref: "paper", x: .5, y: .5,
    font: { size: 14, color: colour.muted },
  }],
});

const layout = (curve, colour) => {
  const lines = { gridcolor: colour.border, linecolor: colour.border, zerolinecolor: colour.border };
  const axis = { ...lines, fixedrange: true, automargin: true };
  return {
    margin: { l: 12, r: 16, t: curve.turns.length ? 36 : 12, b: 12 },
    paper_bgcolor: colour.surface, plot_bgcolor: colour.surface,
    font: { family: "system-ui, sans-serif", size: 12, color: colour.text },
    hoverlabel: { align: "left" }, showlegend: false, dragmode: false, hovermode: "closest",
    xaxis: {
      ...axis, type: hasNames(curve) ? "category" : curve.along.log ? "log" : "linear",
      title: { text: plain(axisTitle(curve.along)) },
    },
    yaxis: { ...axis, rangemode: "tozero", title: { text: plain(axisTitle(curve.metric)) } },
    ...(isAnswered(curve) ? turnMarks(curve, colour) : nothingToDraw(colour)),
  };
};

export const curveChart = () => {
  const place = byId("chart");
  const figures = byId("figures");
  let latest = null;

  const showFigures = () => {
    if (figures.open && latest) figures.querySelector(".wide").replaceChildren(figuresTable(latest.curve));
  };

  const draw = async () => {
    const { curve, lines, x } = latest;
    const colour = colours();
    const Plotly = await plotly();
    const { clientWidth: width, clientHeight: height } = place;
    // not in sight: drawn when it is, by the observer
    if (!width) return;
    await Plotly.react(place, traces(curve, lines, x, colour), { ...layout(curve, colour), width, height }, CONFIG);
    place.setAttribute("aria-label", curveInWords(curve));
    byId("turns").textContent = limitsInWords(curve);
    showFigures();
  };

  figures.addEventListener("toggle", showFigures);
  // Plotly follows the window alone, and not while it is out of sight
  new ResizeObserver(() => { if (latest) draw(); }).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (latest) draw(); });

  return {
    /** `x` is where the configuration stands on the axis, undefined where it does not tell. */
    show(curve, lines, x) {
      latest = { curve, lines, x };
      return draw();
    },
    relined(lines) {
      if (!latest) return;
      latest.lines = lines;
      draw();
    },
    /** What is shown is no longer what is asked. */
    stale(is) { place.classList.toggle("stale", is); },
  };
};
