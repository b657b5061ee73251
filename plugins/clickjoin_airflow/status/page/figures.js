// How each replica fares now.

import { fill, h, pill } from "./dom.js";
import { age, brief, bytes, count, moment, seconds, words } from "./format.js";

const SILENT_SECONDS = 300;
const BEHIND_SECONDS = 30;

function figure(title, value, hint) {
  return h("div", { class: "figure" }, h("dt", {}, title), h("dd", {}, value), hint ? h("p", { class: "quiet" }, hint) : null);
}

function verdict(part, live) {
  // Between two batches there is always something new: it waits too long once no batch takes it up.
  const waited = live?.backlog_events > 0 && Date.now() - new Date(part.last_join_at) > BEHIND_SECONDS * 1000;
  if (part.problems.length || live?.problems?.length) return pill("failing", "problem");
  if (part.backlog_events > 0 || waited) return pill("open", "behind");
  if (!part.last_batch_at) return pill("unknown", "no batch yet");
  const silent = (Date.now() - new Date(part.last_batch_at)) / 1000 > SILENT_SECONDS;
  return silent ? pill("unknown", "quiet") : pill("closed", "fresh");
}

function backlog(part, live) {
  const events = live?.backlog_events ?? part.backlog_events;
  const size = live?.backlog_bytes ?? part.backlog_bytes;
  const inputs = Object.entries(live?.inputs ?? {}).map(([name, found]) => `${name} ${count(found.backlog_events)}`);
  return figure("Backlog", `${count(events)} events`, [...inputs, `${bytes(size)} not planned${live ? " now" : ""}`].join(", "));
}

// No event before it is unread or waits for its primary: all of them are in their last place.
function complete(part, live) {
  const waits = live?.pending ? `${count(live.pending)} events wait for their primary` : "no event waits for its primary";
  const reached = [part.watermark, live?.oldest_pending].filter(Boolean).sort()[0];
  return figure("Complete to", live && part.watermark ? age(reached) : "–", live && part.watermark
    ? `${moment(reached)} UTC of the events' own time; ${waits}` : live ? waits : "");
}

function problems(part, live) {
  const known = new Map();
  for (const one of [...part.problems, ...(live?.problems ?? [])]) known.set(`${one.kind} ${one.path}`, one);
  return [...known.values()].map((one) =>
    h("p", { class: "notice warn" }, h("strong", {}, words(one.kind)), ` ${one.path}: ${one.detail}`));
}

// Counted batch by batch: an id that was dispatched again is counted where it joined again.
const again = (day) => (day.joined > day.accepted ? "; retries of earlier ones, repairs and redrives join, too" : "");

function card(name, part, live) {
  const { latency, day } = part;
  return h("article", { class: "card", "data-replica": name },
    h("header", { class: "row" }, h("h3", {}, name), verdict(part, live)),
    h("dl", { class: "figures" },
      figure("Latency p90", seconds(latency.p90), `p50 ${seconds(latency.p50)}, p99 ${seconds(latency.p99)}`),
      figure("Last batch", age(part.last_join_at), "of new records, settled"),
      backlog(part, live),
      complete(part, live),
      figure("Throughput", `${brief(part.joined_per_second)}/s`, "joined, in 15 minutes"),
      figure("Joined, 24 h", count(day.joined), `${count(day.accepted)} ids accepted${again(day)}`),
      figure("Wasted, 24 h", brief(day.wasted), `${brief(day.conflict_reruns)} conflicts`)),
    live?.unsettled_batch ? h("p", { class: "quiet" }, `Batch ${live.unsettled_batch} is under way.`) : null,
    problems(part, live));
}

export function showFigures(found, live) {
  const names = Object.keys(found.replicas);
  fill("figures", names.length
    ? names.map((name) => card(name, found.replicas[name], live?.[name]))
    : h("p", { class: "quiet" }, "No batch has been settled yet: switch on the pipeline's join."));
  const unread = found.unread_files
    ? ` ${count(found.unread_files)} files of table metrics were not read: switch on the pipeline's gc, which makes few of many.` : "";
  fill("freshness", `As of ${found.now.slice(11, 19)} UTC.${unread}`);
}
