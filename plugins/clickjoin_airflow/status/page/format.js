// Figures as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const some = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

const none = (value) => value === null || value === undefined;

export const count = (value) => (none(value) ? "–" : whole.format(value));
export const brief = (value) => (none(value) ? "–" : Math.abs(value) < 10000 ? figure(value) : short.format(value));

const CLOSE = 10;
const DIGITS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

// Three digits, and more where those would make a whole of what is none: 0.99996 is not 1.
export function figure(value) {
  if (none(value)) return "–";
  if (Number.isInteger(value)) return whole.format(value);
  const blurred = (digits) => Number.isInteger(Number(value.toPrecision(digits)));
  const digits = Math.abs(value) < CLOSE && !Number.isInteger(value) ? DIGITS.find((one) => !blurred(one)) : 3;
  return value.toLocaleString("en", { maximumSignificantDigits: digits ?? 15 });
}

export function bytes(value) {
  if (none(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${some.format(value)} ${units[unit]}`;
}

export function seconds(value) {
  if (none(value)) return "–";
  if (value === 0) return "0 s";
  if (value < 1) return `${whole.format(value * 1000)} ms`;
  if (value < 100) return `${some.format(value)} s`;
  if (value < 6000) return `${whole.format(value / 60)} min`;
  if (value < 172800) return `${some.format(value / 3600)} h`;
  return `${some.format(value / 86400)} d`;
}

export const age = (time) => (time ? `${seconds(Math.max(Math.round((Date.now() - new Date(time)) / 1000), 0))} ago` : "–");
export const moment = (text) => (text ? text.slice(0, 19).replace("T", " ") : "–");
export const words = (name) => name.replaceAll("_", " ");
