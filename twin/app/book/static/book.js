"use strict";

/* Charts are drawn from the JSON beside them when they come into view; findings are filtered in place. */

const COLOURS = ["#3b78c9", "#c2660c", "#2b8a4b", "#9356bd", "#12858c", "#c0426f"];
const PREDICTORS = { nearest: "#8a8f96", regression: "#c2660c", analytic: "#3b78c9", hybrid: "#2b8a4b" };

const inPage = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const shown = (value) => Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(1);

function escaped(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
}

/* A long name over several lines, of which no word is cut. */
function wrapped(text, width) {
  const lines = [""];
  for (const word of String(text).split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = last ? `${last} ${word}` : word;
  }
  return lines.join("<br>");
}

function layout(chart, further) {
  const ink = inPage("--ink"), line = inPage("--line");
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, automargin: true, fixedrange: false };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12, family: "system-ui, sans-serif" },
    margin: { l: 48, r: 12, t: 8, b: 40 },
    hoverlabel: { align: "left", bgcolor: inPage("--ground"), bordercolor: line, font: { color: ink, size: 12 } },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 11 } },
    ...further,
    xaxis: { ...axis, ...further.xaxis },
    yaxis: { ...axis, ...further.yaxis },
  };
}

function logAxis(values) {
  const seen = values.filter((one) => one > 0);
  const decades = Math.log10(Math.max(...seen) / Math.min(...seen));
  return { type: "log", dtick: decades > 2.2 ? 1 : "D2", tickformat: "~r" };
}

/* A value, its unit and how far it is from what was measured. */
function saidOf(name, said, figure, chart) {
  if (!said) return "";
  const [value, low, high] = said;
  let text = `<br>${name} ${shown(value)}`;
  if (figure.value !== null && (chart.points || figure.value !== 0)) {
    const off = chart.points ? value - figure.value : 100 * (value / figure.value - 1);
    text += ` (${signed(off)}${chart.points ? " points" : "%"})`;
  }
  return `${text}, 90% interval ${shown(low)} to ${shown(high)}`;
}

function hoverOf(figure, answer, series, chart) {
  const place = [series.name, chart.axis.names ? figure.at : `${chart.axis.title} ${figure.at}`].filter(Boolean);
  const value = figure.value === null ? `${figure.low} to ${figure.high}` : shown(figure.value);
  const rules = figure.mark ? `<br>${figure.mark === "error" ? "in quarantine" : "warned of"}: ${escaped(figure.rules)}` : "";
  return `${escaped(chart.source)}, line ${figure.line}: printed “${escaped(figure.printed)}”` +
    `<br>${wrapped(escaped(place.join("; ")), 60)}<br>measured ${value} ${chart.unit}` +
    saidOf("analytic", answer && answer.analytic, figure, chart) +
    saidOf("hybrid", answer && answer.hybrid, figure, chart) + rules;
}

function tableTraces(chart) {
  const named = Boolean(chart.axis.names);
  // names stand beside their rows: the axis of values lies below
  const turned = chart.axis.title === "";
  const placed = (at, values) => (turned ? { x: values, y: at } : { x: at, y: values });
  const traces = [];
  chart.series.forEach((series, number) => {
    const colour = COLOURS[number % COLOURS.length];
    const answers = new Map(series.answers.map((one) => [one.configuration, one]));
    const says = (name) => series.answers.some((one) => one[name]);
    // an excuse is a gap: no line leads over it
    const each = (name, of) => series.answers.map((one) => (one[name] ? of(one[name]) : null));
    const spread = (name) => ({
      type: "data", symmetric: false, thickness: 1.2, width: 4, color: colour,
      array: each(name, ([value, , high]) => high - value),
      arrayminus: each(name, ([value, low]) => value - low),
    });
    const bars = turned ? "error_x" : "error_y";
    const group = { type: "scatter", legendgroup: String(number), ...(named && !turned ? { offsetgroup: String(number) } : {}) };
    const common = { ...group, showlegend: false, hoverinfo: "skip" };
    const last = says("hybrid") ? "hybrid" : "analytic";
    for (const name of ["analytic", "hybrid"]) {
      if (!says(name)) continue;
      traces.push({
        ...common, ...placed(series.answers.map((one) => one.at), each(name, ([value]) => value)), connectgaps: false,
        mode: named ? "markers" : "lines+markers",
        line: { color: colour, width: name === "hybrid" ? 1.6 : 1.2, dash: name === "hybrid" ? "solid" : "dot" },
        marker: name === "hybrid"
          ? { symbol: turned ? "line-ns-open" : "line-ew-open", size: 9, color: colour, line: { width: 2, color: colour } }
          : { symbol: "diamond-open", size: 10, color: colour, line: { width: 1.4, color: colour } },
        ...(name === last ? { [bars]: spread(name) } : {}),
      });
    }
    const texts = series.figures.map((one) => hoverOf(one, answers.get(one.configuration), series, chart));
    const measured = series.figures.map((one, at) => ({ ...one, text: texts[at] }));
    const points = (some, marker, further) => ({
      ...group, mode: "markers", ...placed(some.map((one) => one.at), some.map((one) => one.value)),
      text: some.map((one) => one.text), hovertemplate: "%{text}<extra></extra>", marker, ...further,
    });
    const right = measured.filter((one) => one.mark !== "error");
    const width = right.map((one) => (one.mark === "warning" ? 2.5 : 0));
    traces.push(points(
      right, { color: colour, size: 7, line: { width, color: inPage("--warning") } },
      { name: series.name || "measured", showlegend: chart.series.length > 1 },
    ));
    const wrong = measured.filter((one) => one.mark === "error");
    traces.push(points(wrong, { color: inPage("--error"), size: 9, symbol: "x" }, { showlegend: false }));
    series.figures.forEach((one, at) => {
      if (one.value !== null) return;
      traces.push({
        ...common, ...placed([one.at, one.at], [one.low, one.high]), mode: "lines", hoverinfo: undefined,
        text: [texts[at], texts[at]], hovertemplate: "%{text}<extra></extra>", line: { color: colour, width: 7 },
        opacity: 0.6,
      });
    });
  });
  const all = chart.series.flatMap((one) => [
    ...one.figures.flatMap((figure) => [figure.value, figure.high || 0]), ...one.answers.flatMap((said) => [
      ...(said.hybrid || []), ...(said.analytic || [])]),
  ]);
  // a little below nothing, so that a point at nothing is seen whole
  const top = chart.values.top || Math.max(...all) || 1;
  const values = {
    ...(chart.values.log ? logAxis(all) : { range: [-0.03 * top, 1.06 * top] }),
    title: { text: chart.unit, font: { size: 11 }, standoff: 6 },
  };
  const along = named
    ? {
      type: "category", categoryorder: "array", categoryarray: chart.axis.names,
      tickvals: chart.axis.names, ticktext: chart.axis.names.map((one) => wrapped(one, turned ? 62 : 16)),
      ...(turned ? { autorange: "reversed" } : {}),
    }
    : {
      type: chart.axis.log ? "log" : "linear", tickvals: chart.axis.ticks.map((one) => one[0]),
      ticktext: chart.axis.ticks.map((one) => one[1]),
    };
  along.title = { text: chart.axis.title, font: { size: 11 }, standoff: 6 };
  // points of several lines at one name stand beside each other
  const apart = named && !turned ? { scattermode: "group", scattergap: 0.4 } : {};
  return [traces, layout(chart, { ...apart, ...(turned ? { xaxis: values, yaxis: along } : { xaxis: along, yaxis: values }) })];
}

function examTraces(chart) {
  const column = (series, at) => series.points.map((one) => one[at]);
  const ends = chart.series.flatMap((one) => column(one, 0).concat(column(one, 1)));
  const corners = [0.8 * Math.min(...ends), 1.25 * Math.max(...ends)];
  const line = {
    type: "scatter", mode: "lines", x: corners, y: corners, showlegend: false, hoverinfo: "skip",
    line: { color: inPage("--dim"), width: 1 },
  };
  const traces = chart.series.map((series, number) => ({
    type: "scatter", mode: "markers", name: series.name, x: column(series, 0), y: column(series, 1),
    marker: { color: COLOURS[number % COLOURS.length], size: 5 },
    error_y: {
      type: "data", symmetric: false, thickness: 0.8, width: 0, color: COLOURS[number % COLOURS.length],
      array: series.points.map((one) => one[3] - one[1]), arrayminus: series.points.map((one) => one[1] - one[2]),
    },
    text: series.points.map((one) => `${escaped(series.name)}, ${escaped(one[4])}<br>measured ${shown(one[0])} ${chart.unit}` +
      `<br>hybrid ${shown(one[1])} (${signed(100 * (one[1] / one[0] - 1))}%), 90% interval ${shown(one[2])} to ${shown(one[3])}`),
    hovertemplate: "%{text}<extra></extra>",
  }));
  return [[line, ...traces], layout(chart, {
    xaxis: { ...logAxis(ends), title: { text: `measured, ${chart.unit}`, standoff: 6 } },
    yaxis: { ...logAxis(ends), title: { text: `hybrid, held out, ${chart.unit}`, standoff: 6 } },
  })];
}

function errorTraces(chart) {
  const traces = chart.series.map((series) => ({
    type: "scatter", mode: "lines", name: series.name,
    x: series.errors.map((one) => Math.max(one, 0.05)),
    y: series.errors.map((_, at) => (100 * (at + 1)) / series.errors.length),
    line: { color: PREDICTORS[series.name], width: series.name === "hybrid" ? 2.4 : 1.6 },
    hovertemplate: `${series.name}: %{y:.0f}% of the rows within %{x:.3g}%<extra></extra>`,
  }));
  return [traces, layout(chart, {
    xaxis: { type: "log", tickvals: [0.1, 1, 10, 100, 1000], ticktext: ["0.1", "1", "10", "100", "1000"],
      title: { text: "error of at most, %", standoff: 6 } },
    yaxis: { range: [0, 100], title: { text: "share of answered rows, %", standoff: 6 } },
  })];
}

const KINDS = { table: tableTraces, exam: examTraces, errors: errorTraces };
const drawn = new Set();

function heightOf(chart) {
  if (chart.kind !== "table") return 440;
  if (chart.axis.title === "") {
    const lines = chart.axis.names.map((one) => wrapped(one, 62).split("<br>").length);
    return 70 + lines.reduce((sum, one) => sum + 12 + 15 * one, 0);
  }
  if (chart.series.length === 1) return 300;
  // an entry of the legend takes so much of a chart's width
  const perRow = Math.max(1, Math.floor(380 / (45 + 6 * Math.max(...chart.series.map((one) => one.name.length)))));
  return 300 + 19 * Math.ceil(chart.series.length / perRow);
}

function draw(place) {
  const chart = JSON.parse(document.querySelector(`script[data-for="${place.id}"]`).textContent);
  const [traces, how] = KINDS[chart.kind](chart);
  place.style.height = `${heightOf(chart)}px`;
  Plotly.react(place, traces, how, { displayModeBar: false, responsive: true });
  drawn.add(place);
}

function drawInView() {
  const places = document.querySelectorAll(".plot");
  for (const place of places) {
    place.style.height = `${heightOf(JSON.parse(document.querySelector(`script[data-for="${place.id}"]`).textContent))}px`;
  }
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });
  places.forEach((place) => observer.observe(place));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
}

function filterFindings() {
  const form = document.querySelector(".filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("table.findings tbody tr[data-source]")];
  const wanted = () => Object.fromEntries([...form.querySelectorAll("[data-filter]")].map((one) => [one.dataset.filter, one.value]));
  const apply = () => {
    const { text, ...exact } = wanted();
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const content = row.textContent.toLowerCase();
      row.hidden = !(Object.entries(exact).every(([name, value]) => !value || row.dataset[name] === value) &&
        words.every((word) => content.includes(word)));
    }
    form.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} findings`;
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

/* Without Plotly, or printed, the tables tell the same. */
if (typeof Plotly !== "undefined") drawInView();
filterFindings();
