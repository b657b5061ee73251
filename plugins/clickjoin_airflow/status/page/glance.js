// The pipeline in one line: is what was verified in order, which date is complete, does one fail.

import { fill, h, pill } from "./dom.js";
import { age, moment } from "./format.js";

let known = {};

function verified([newest]) {
  if (!newest) return [pill("unknown", "never verified")];
  const since = newest.from_time ? `, events from ${moment(newest.from_time).slice(0, 16)} UTC on` : "";
  return [pill(newest.ok ? "closed" : "failing", newest.ok ? "in order" : "faults"), ` verified ${age(newest.at)}${since}`];
}

function dated(days) {
  const of = (state) => days.filter((day) => day.state === state);
  const newest = of("closed").at(-1)?.date;
  const failing = of("failing").length;
  if (!failing && !newest) return [pill("unknown", "no date closed")];
  return [failing ? pill("failing", `${failing} ${failing === 1 ? "date" : "dates"} failing`) : pill("closed", "no date failing"),
    newest ? ` newest closed ${newest}` : ""];
}

// Parts come one by one; null starts again, for another pipeline.
export function glance(part) {
  known = part === null ? {} : { ...known, ...part };
  const link = (id, text) => h("li", {}, h("button", { type: "button", class: "plain", onclick: () => document.getElementById(id).scrollIntoView() }, text));
  fill("glance", known.verifications ? link("found-title", verified(known.verifications)) : null,
    known.dates ? link("dates-title", dated(known.dates)) : null);
}
