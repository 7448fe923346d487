// A file of questions, answered row by row; rejected rows with their reasons.

import { Refusal, upload } from "./api.js";
import { byId, download, element, familyOptions, options, speak, table } from "./element.js";
import { showProblems } from "./problems.js";
import { counted, figure, interval, label, whole } from "./words.js";

const MEGABYTE = 1_000_000;
const TIMES = [0.5, 1, 2];

const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

/** A family's example in a few sizes: enough to see what a file looks like. */
const exampleFile = ({ example }) => {
  const size = example.message_bytes;
  const rows = size ? TIMES.map((times) => ({ ...example, message_bytes: Math.round(size * times) })) : [example];
  const names = Object.keys(example);
  const lines = rows.map((row, at) => [`example-${at + 1}`, ...names.map((name) => cell(row[name]))]);
  return [["request_id", ...names], ...lines].map((line) => `${line.join(",")}\n`).join("");
};

const answersTable = (said) => table(
  said.answers.length < said.answered + said.excused
    ? `Answers: the first ${whole(said.answers.length)}; the file has all`
    : "Answers",
  [
    { heading: "Request", cell: ({ request_id }) => request_id },
    { heading: "Value", class: "number", cell: ({ value }) => figure(value) },
    { heading: "90%", class: "number", cell: ({ lo90, hi90 }) => interval(lo90, hi90) },
    { heading: "Limited by", cell: ({ bottleneck }) => bottleneck ?? "–" },
    { heading: "Notes", class: "words", cell: ({ excuse, domain_reason }) => excuse ?? domain_reason ?? "" },
  ], said.answers);

const rejectsTable = (said) => table("Rejected rows", [
  { heading: "Row", class: "number", cell: ({ row }) => whole(row) },
  { heading: "Request", cell: ({ request_id }) => request_id },
  { heading: "Field", cell: ({ field }) => field || "the whole row" },
  { heading: "Reason", class: "words", cell: ({ reason }) => reason },
], said.rejects);

const report = (said, name) => [
  element("section", { class: "card verdict" }, [
    element("h2", {}, `${counted(said.answered, "row")} answered, `
      + `${whole(said.excused)} without an answer, ${whole(said.rejected)} rejected`),
    element("button", { type: "button", onclick: () => download(name, said.csv) }, "Download the answers as CSV"),
  ]),
  ...[said.rejects.length && rejectsTable(said), said.answers.length && answersTable(said)].filter(Boolean),
];

export const batch = (home) => {
  const form = byId("batch-form");
  const { upload_bytes: mostBytes, upload_rows: mostRows } = home.limits;

  const problemWith = (file) => {
    if (!file) return "choose a file";
    if (file.size <= mostBytes) return null;
    return `the file has ${whole(file.size)} bytes; at most ${whole(mostBytes)} are taken`;
  };

  const answer = async () => {
    const [file] = byId("file").files;
    const problem = problemWith(file);
    if (problem) throw new Refusal([{ field: "file", reason: problem }]);
    const query = new URLSearchParams({
      name: file.name, predictor: byId("batch-predictor").value, target: byId("batch-target").value,
    });
    const said = await upload(`/api/batch?${query}`, file);
    showProblems(form, []);
    byId("batch-result").replaceChildren(...report(said, `${file.name.replace(/\.[^.]*$/, "")}.predictions.csv`));
    speak(byId("batch-result").querySelector("h2").textContent);
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    try {
      await answer();
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      showProblems(form, refusal.problems);
    } finally {
      button.disabled = false;
    }
  });
  byId("example-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const family = home.families.find((one) => one.family === byId("example-family").value);
    download(`${family.family}.csv`, exampleFile(family));
  });

  byId("file-says").textContent =
    `.csv, .jsonl or .parquet, at most ${whole(mostBytes / MEGABYTE)} MB and ${whole(mostRows)} rows`;
  byId("batch-predictor").append(...options(home.model.predictors.map((name) => [name, name])));
  byId("batch-target").append(...options(home.model.targets.map((name) => [name, label(name)])));
  byId("example-family").append(...familyOptions(home.families));

  return { shown() {} };
};
