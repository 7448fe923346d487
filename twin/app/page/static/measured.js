// The searchable list of measured configurations: a combobox with a listbox, by mouse and by keyboard.

import { byId, element } from "./element.js";
import { figure } from "./words.js";

const MOST_SHOWN = 60;

export const nameOf = (row) => `${row.source_id}, table ${row.table_label || "–"}, line ${row.line}`;

const searched = (row) => `${nameOf(row)} ${row.family} ${row.family.replaceAll("_", " ")} ${row.label}`.toLowerCase();

const notes = (count) => {
  const note = (text) => element("li", { class: "muted", role: "option", "aria-disabled": "true" }, text);
  if (count === 0) return [note("Nothing measured has all these words.")];
  return count > MOST_SHOWN ? [note(`${count - MOST_SHOWN} more: type further words.`)] : [];
};

export const measuredPicker = (measured, picked) => {
  const input = byId("measured");
  const list = byId("measured-list");
  const rows = measured.map((row) => ({ row, text: searched(row) }));
  let found = [];
  let active = -1;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const activate = (at) => {
    list.children[active]?.removeAttribute("aria-selected");
    active = Math.max(0, Math.min(found.length - 1, at));
    const option = list.children[active];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
  };

  const pick = (row) => {
    close();
    input.value = "";
    picked(row);
  };

  const option = (row, at) => element("li", {
    id: `measured-${at}`, role: "option",
    // before the input loses the focus, which would close the list
    onmousedown: (event) => { event.preventDefault(); pick(row); },
  }, [
    element("span", {}, nameOf(row)),
    element("span", { class: "muted" }, row.label),
    row.throughput_msgs_per_s === null ? null
      : element("span", { class: "number" }, `${figure(row.throughput_msgs_per_s)} msgs/s`),
  ]);

  const open = () => {
    const words = input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const all = rows.filter(({ text }) => words.every((word) => text.includes(word))).map(({ row }) => row);
    found = all.slice(0, MOST_SHOWN);
    list.replaceChildren(...found.map(option), ...notes(all.length));
    list.hidden = false;
    active = -1;
    input.setAttribute("aria-expanded", "true");
    input.removeAttribute("aria-activedescendant");
  };

  const keys = {
    ArrowDown: () => (list.hidden ? open() : activate(active + 1)),
    ArrowUp: () => { if (!list.hidden) activate(active - 1); },
    Enter: () => { if (found[active] && !list.hidden) pick(found[active]); },
    Escape: close,
  };
  input.addEventListener("keydown", (event) => {
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });
  input.addEventListener("input", open);
  input.addEventListener("click", open);
  input.addEventListener("blur", close);
};
