// Figures and names as a person reads them.

const FOUR_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const EXACT = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const NOTHING = "–";

/** A predicted or measured figure: more digits would claim more than is known. */
export const figure = (value) => (typeof value === "number" ? FOUR_DIGITS.format(value) : NOTHING);
export const whole = (value) => (typeof value === "number" ? WHOLE.format(value) : NOTHING);
export const percent = (value) =>
  // adding 0 takes the sign off a zero
  (typeof value === "number" ? `${FOUR_DIGITS.format(Number(value.toFixed(1)) + 0)}%` : NOTHING);
export const signedPercent = (value) => (value > 0 ? `+${percent(value)}` : percent(value));
export const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);
export const interval = (low, high, between = " to ") =>
  (typeof low === "number" ? `${figure(low)}${between}${figure(high)}` : NOTHING);

/** A value of a configuration: what was told, to the last digit. */
export const told = (value) => {
  if (typeof value === "number") return EXACT.format(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return value === null || value === undefined || value === "" ? "not told" : String(value).replaceAll("_", " ");
};

// columns carry their unit in the name; on the page it stands behind the figure
const UNIT_IN_NAME = /_(msgs_per_s|mb|kb|mbps|ms|s)$/;
const ABBREVIATED = {
  os: "operating system", cpus: "processors", mhz: "processor clock", cpu_ms_per_msg: "CPU time per message",
  esql: "ESQL program", ssl: "SSL", sharecnv: "SHARECNV", specint_rate95: "SPECint_rate95", lspr_itr: "LSPR ratio",
};

export const label = (name) => ABBREVIATED[name] ?? name.replace(UNIT_IN_NAME, "").replaceAll("_", " ");

export const changesInWords = (changes) =>
  Object.entries(changes).map(([name, value]) => `${label(name)} ${told(value)}`).join(", ");

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export const counted = (count, one, many = `${one}s`) => `${whole(count)} ${count === 1 ? one : many}`;
