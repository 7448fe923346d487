// What is asked: a configuration, the field along which it varies, the metric, the lines shown. It lives in the
// page's address, so that a link can be shared; an address that makes no sense is ignored.

const THROUGHPUT = "throughput_msgs_per_s";
const LINES = ["hybrid", "analytic"];

const varies = (field) => field.slider || field.choices.length > 1 || field.kind === "flag";

/** Fields that can be the x axis, those with a slider first. */
export const alongFields = (family) => {
  const fields = family.fields.filter(varies);
  return [...fields.filter((field) => field.slider), ...fields.filter((field) => !field.slider)];
};

const defaultAlong = (family) => {
  const fields = alongFields(family);
  const telling = fields.find((field) => field.name === "message_bytes")
    ?? fields.find((field) => field.slider && field.part === "workload" && field.required)
    ?? fields[0];
  return telling?.name ?? null;
};

const isScalar = (value) => ["string", "number", "boolean"].includes(typeof value);

/** The state with whatever does not fit the configuration's family replaced by its default. */
const fitting = (families, state) => {
  const family = families.get(state.configuration.family);
  const along = alongFields(family).some(({ name }) => name === state.along) ? state.along : defaultAlong(family);
  const names = family.metrics.map(({ name }) => name);
  const metric = [state.metric, THROUGHPUT, names[0]].find((name) => names.includes(name));
  return { ...state, along, metric };
};

const configurationIn = (families, text) => {
  const configuration = JSON.parse(text);
  const family = families.get(configuration?.family);
  const known = new Set(family?.fields.map(({ name }) => name));
  const sound = Object.entries(configuration).every(([name, value]) =>
    (known.has(name) || name === "family") && isScalar(value));
  return family && sound ? configuration : null;
};

const fromAddress = (families) => {
  const query = new URLSearchParams(location.search);
  try {
    const configuration = configurationIn(families, query.get("configuration"));
    return configuration && {
      configuration,
      along: query.get("along"),
      metric: query.get("metric"),
      lines: query.get("lines")?.split(",") ?? LINES,
      start: query.get("start"),
    };
  } catch {
    return null;
  }
};

const toAddress = (state) => {
  const query = new URLSearchParams();
  query.set("configuration", JSON.stringify(state.configuration));
  for (const name of ["along", "metric", "start"]) if (state[name]) query.set(name, state[name]);
  query.set("lines", state.lines.join(","));
  return `?${query}${location.hash}`;
};

export const createState = (home) => {
  const families = new Map(home.families.map((family) => [family.family, family]));
  const example = { configuration: { ...home.families[0].example }, lines: LINES, start: null };
  let current = fitting(families, fromAddress(families) ?? example);
  const listeners = [];

  return {
    get now() { return current; },
    get family() { return families.get(current.configuration.family); },
    onChange(listener) { listeners.push(listener); },
    /** `cause` says since when the reader waits and who made the change, for whoever listens. */
    change(part, cause = {}) {
      current = fitting(families, { ...current, ...part });
      for (const listener of listeners) listener(current, cause);
    },
    /** Browsers allow few writes to the address, so this is called when things rest. */
    remember() { history.replaceState(null, "", toAddress(current)); },
  };
};

/** The configuration with some fields changed; a field without a value is left out. */
export const changed = (configuration, changes) =>
  Object.fromEntries(Object.entries({ ...configuration, ...changes }).filter(([, value]) =>
    value !== null && value !== undefined && value !== ""));
