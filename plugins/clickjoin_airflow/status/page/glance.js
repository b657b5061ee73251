// The pipeline in one line: has the verification found faults, which date is complete, does one fail.

import { fill, h, pill } from "./dom.js";
import { age, moment } from "./format.js";

let known = {};

// By the newest run, and by the newest that covered all that is kept: what lies before the one's range only the other has seen.
function verified(runs) {
  const [newest] = runs;
  if (!newest) return [pill("unknown", "never verified")];
  const full = runs.find((run) => run.full) ?? newest;
  const from = (run) => `events from ${moment(run.from_time).slice(0, 16)} UTC on`;
  const before = full === newest ? "" : `; ${from(full)} ${age(full.at)}`;
  const ok = newest.ok && full.ok;
  return [pill(ok ? "closed" : "failing", ok ? "no faults" : "faults"), ` verified ${age(newest.at)}, ${from(newest)}${before}`];
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
