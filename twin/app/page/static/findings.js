// The findings of the last validation, to be searched.

import { get } from "./api.js";
import { byId, element, options, table } from "./element.js";
import { capital, counted } from "./words.js";

const COLUMNS = [
  { heading: "Severity", cell: ({ severity }) => element("span", { class: `severity-${severity}` }, severity) },
  { heading: "Rule", cell: ({ rule }) => rule.replaceAll("_", " ") },
  { heading: "Source", class: "name", cell: ({ source_id }) => source_id },
  { heading: "Line", class: "number", cell: ({ line }) => String(line ?? "–") },
  { heading: "Printed", cell: ({ printed }) => printed ?? "–" },
  { heading: "Expected", cell: ({ expected }) => expected ?? "–" },
  { heading: "Why", class: "words", cell: ({ message }) => message ?? "" },
];
const FILTERS = { source_id: "finding-source", severity: "finding-severity", rule: "finding-rule" };

const counts = (findings, column) => {
  const found = new Map();
  for (const finding of findings) found.set(finding[column], (found.get(finding[column]) ?? 0) + 1);
  return [...found].sort(([one], [other]) => String(one).localeCompare(String(other)));
};

const matching = (findings) => {
  const words = byId("finding-text").value.toLowerCase().split(/\s+/).filter(Boolean);
  return findings.filter((finding) => {
    const chosen = Object.entries(FILTERS).every(([column, id]) => ["", finding[column]].includes(byId(id).value));
    const text = Object.values(finding).join(" ").replaceAll("_", " ").toLowerCase();
    return chosen && words.every((word) => text.includes(word.replaceAll("_", " ")));
  });
};

const show = (findings) => {
  const some = matching(findings);
  const errors = some.filter(({ severity }) => severity === "error").length;
  byId("findings-count").textContent = `${some.length} of ${counted(findings.length, "finding")}: `
    + `${counted(errors, "error")} (kept out), ${counted(some.length - errors, "warning")} (flagged).`;
  byId("findings-table").replaceChildren(some.length ? table("Findings", COLUMNS, some) : "");
};

export const findings = () => {
  let all = null;

  const load = async () => {
    try {
      all = (await get("/api/findings")).findings;
    } catch (refusal) {
      byId("findings-count").textContent = capital(refusal.message);
      return;
    }
    for (const [column, id] of Object.entries(FILTERS)) {
      const pairs = counts(all, column).map(([value, count]) => [value, `${value.replaceAll("_", " ")} (${count})`]);
      byId(id).replaceChildren(...options([["", "all"], ...pairs]));
    }
    show(all);
  };

  byId("findings-form").addEventListener("input", () => { if (all) show(all); });
  byId("findings-form").addEventListener("submit", (event) => event.preventDefault());

  return { shown() { if (!all) load(); } };
};
