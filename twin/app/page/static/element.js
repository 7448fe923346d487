// The one way this page makes nodes. Texts become text nodes: nothing the server says is read as HTML.

export const element = (tag, attributes = {}, children = []) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...[children].flat().filter((child) => child !== null && child !== undefined));
  return node;
};

export const byId = (id) => document.getElementById(id);

/** Tells those who listen to the page what those who look at it see. */
export const speak = (sentence) => { byId("spoken").textContent = sentence; };

/** Options of a select: pairs of a value and what is shown for it. */
export const options = (pairs, chosen) =>
  pairs.map(([value, text]) => element("option", { value, selected: value === chosen }, text));

/** Experiment families under the system that they belong to. */
export const familyOptions = (families) => {
  const systems = new Map();
  for (const { family, title } of families) systems.set(title, [...(systems.get(title) ?? []), family]);
  return [...systems].map(([title, names]) =>
    element("optgroup", { label: title }, options(names.map((name) => [name, name.replaceAll("_", " ")]))));
};

/** A table that scrolls by itself where the window is narrow. A column has a heading, a cell for each row, a class. */
export const table = (caption, columns, rows) =>
  element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": caption }, [
    element("table", {}, [
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, columns.map((column) =>
        element("th", { scope: "col", class: column.class }, column.heading)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, columns.map((column) =>
        element("td", { class: column.class }, column.cell(row)))))),
    ]),
  ]);

/** Hands the reader a file that was made here. */
export const download = (name, text) => {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href: address, download: name }).click();
  URL.revokeObjectURL(address);
};
