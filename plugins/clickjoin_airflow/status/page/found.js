// What verifications and quality suites found, newest first.

import { fill, h, pill, table } from "./dom.js";
import { count, moment, seconds, words } from "./format.js";

function kinds(run) {
  if (!run.found.length) return "nothing";
  return run.found.map((one) => h("div", { title: one.samples.map((sample) => JSON.stringify(sample)).join("\n") },
    `${words(one.kind)} ${count(one.count)}`, one.repaired ? `, ${count(one.repaired)} repaired` : "", one.fault ? "" : " (no fault)"));
}

function verifications(runs) {
  return table([
    ["", (run) => pill(run.ok ? "closed" : "failing", run.ok ? "no faults" : "faults")],
    ["at", (run) => moment(run.at)], ["events from", (run) => moment(run.from_time).slice(0, 16)], ["to", (run) => moment(run.to_time).slice(0, 16)],
    ["ids", (run) => count(run.ids), "number"], ["found", kinds], ["took", (run) => seconds(run.seconds), "number"],
  ], runs.slice(0, 12), { caption: "Verifications; times UTC", empty: "No verification has run yet: switch on the pipeline's verify." });
}

function quality(runs) {
  const verdict = (run) => (run.failed ? pill("failing", `${run.failed} failed`) : run.warned ? pill("open", `${run.warned} warned`)
    : run.passed ? pill("closed", "passed") : pill("unknown", "undecided"));
  return table([
    ["", verdict], ["date", (run) => run.date],
    ["at", (run) => moment(run.at)], ["passed", (run) => count(run.passed), "number"],
    ["undecided", (run) => count(run.undecided), "number"], ["took", (run) => seconds(run.seconds), "number"],
  ], runs, { caption: "Quality runs; times UTC", empty: "No quality check has run yet." });
}

export function showFound(found) {
  fill("found", verifications(found.verifications), h("div", { class: "tall" }, quality(found.quality)));
}
