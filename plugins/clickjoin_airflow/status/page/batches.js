// The newest batches, with what each step took.

import { fill, h, table } from "./dom.js";
import { count, moment, seconds, words } from "./format.js";

const STEPS = ["plan", "land", "lookup", "claim", "publish", "settle"];
const REST = ["repeats", "wasted", "pending", "unjoinable", "expired", "filtered", "quarantined",
  "passed_over", "conflict_reruns"];

function bar(row) {
  const whole = STEPS.reduce((sum, step) => sum + (row[`seconds_${step}`] ?? 0), 0);
  const text = STEPS.map((step) => `${step} ${seconds(row[`seconds_${step}`])}`).join(", ");
  const parts = STEPS.map((step, index) => {
    const part = h("i", { class: `s${index + 1}` });
    part.style.setProperty("flex-grow", String((row[`seconds_${step}`] ?? 0) / (whole || 1)));
    return part;
  });
  return h("div", { class: "steps", title: text }, h("span", { class: "bar", role: "img", "aria-label": text }, parts), seconds(whole));
}

function rest(row) {
  return REST.filter((name) => row[name]).map((name) => `${words(name)} ${count(row[name])}`).join(", ") || "–";
}

export function showBatches(rows) {
  fill("batches", h("ul", { class: "legend" }, STEPS.map((step, index) => h("li", {}, h("i", { class: `swatch s${index + 1}` }), step))), table([
    ["settled", (row) => moment(row.settled_at)], ["replica", (row) => row.replica], ["batch", (row) => `${row.sequence} ${row.batch}`],
    ["in", (row) => count(row.events_in), "number"], ["joined", (row) => count(row.joined), "number"], ["and", rest],
    ["p90", (row) => seconds(row.latency_p90), "number"], ["steps", bar],
  ], rows, { caption: "Newest first; times UTC", empty: "No batch has been settled yet." }));
}
