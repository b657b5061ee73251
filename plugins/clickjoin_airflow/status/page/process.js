// Per-key processing: how it stands, what was reported today, and the chart of one key.

import { pipeline } from "./api.js";
import { byId, fill, h, notice, pill, table } from "./dom.js";
import { age, count, figure, moment } from "./format.js";
import { asTable, drawing } from "./keychart.js";

const RANGES = { "": "its newest signal", "1h": "1 hour", "6h": "6 hours", "1d": "24 hours", "7d": "7 days" };
const KIND = { spike: "failing", dip: "open" };

const stamp = (text) => (text ? `${moment(text)} UTC` : "not known");

function standing(status) {
  const figures = [["Key", status.key], ["Last batch", status.batch ? age(status.settled_at) : "none yet"],
    ["Keys with state", count(status.keys_in_state)], ["Rows unread", count(status.backlog_events)],
    ["Processed to", stamp(status.watermark)], ["Output complete to", stamp(status.output_watermark)]];
  return [h("dl", { class: "counts" }, figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    h("p", { class: "quiet", id: "rests-on" }, "The watermark rests on ", h("span", {}, status.why))];
}

function window_(row) {
  const [from, to] = [moment(row.window_start), moment(row.window_end)];
  return `${from} – ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`;
}

function list(today, state) {
  const link = (row) => h("a", { href: `#${state.link({ key: row.key, range: null })}`, class: "key" }, row.key);
  const kinds = Object.entries(today.kinds).map(([kind, found]) => h("li", {}, pill(KIND[kind] ?? "unknown", kind), h("b", {}, count(found))));
  const newest = today.newest ? ` The newest was reported at ${stamp(today.newest)}.` : "";
  const more = today.count - today.rows.length;
  return [h("ul", { class: "legend" }, kinds), h("div", { class: "tall" }, table([
    ["reported", (row) => moment(row.reported_at).slice(11)], ["", (row) => pill(KIND[row.kind] ?? "unknown", row.retracted ? `${row.kind}, retracted` : row.kind)], ["key", link],
    ["window", window_], ["count reported", (row) => count(row.count), "number"], ["expected", (row) => figure(row.expected), "number"],
    ["low", (row) => figure(row.low), "number"], ["high", (row) => figure(row.high), "number"], ["score", (row) => figure(row.score), "number"],
  ], today.rows, { caption: "Signals of today, newest first; times UTC", empty: `No signal was reported today (UTC).${newest}` })),
  more > 0 ? h("p", { class: "quiet" }, `${count(more)} more: clickjoin signals --limit ${today.count} lists them.`) : null];
}

// Nothing where the pipeline has no section `process`.
export function showProcess(found, state) {
  byId("process").hidden = !found;
  if (found) fill("processing", ...standing(found.status), ...list(found.today, state));
}

function notes(chart) {
  const wide = chart.seconds > chart.window_seconds
    ? `A step is ${chart.seconds / chart.window_seconds} windows: choose a shorter range for what was expected of one.` : "";
  const late = chart.late ? `${count(chart.late)} of the events came late, and the processor was not given them.` : "";
  const none = !wide && !chart.bands.length ? "What was expected is not known for this time." : "";
  return h("p", { class: "quiet" }, [wide, late, none].filter(Boolean).join(" "));
}

const LEGEND = [["events", "events of a window, in the output"], ["band", "expected, where it is known"],
  ["spike", "spike"], ["dip", "dip"]];

function shown(chart) {
  const place = h("div", { class: "keychart" });
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.max(place.clientWidth, 280);
    if (Math.abs(width - drawn) > 1) fill(place, drawing(chart, drawn = width));
  }).observe(place);
  return [place, h("ul", { class: "legend" }, LEGEND.map(([name, text]) => h("li", {}, h("span", { class: `swatch ${name}` }), text))),
    notes(chart), h("details", {}, h("summary", { class: "quiet" }, "As a table"), h("div", { class: "tall" }, asTable(chart)))];
}

export async function showKey(state, key, range, go) {
  const place = byId("key");
  place.hidden = false;
  byId("which").value = key;
  const choice = Object.entries(RANGES).map(([name, text]) => h("button", {
    type: "button", class: "plain", "aria-pressed": String(name === range), onclick: () => go({ range: name }) }, text));
  const head = h("header", { class: "row" }, h("h3", {}, "Key ", h("code", {}, key)), h("div", { class: "choice", role: "group", "aria-label": "Time range of the key" }, choice),
    h("button", { type: "button", class: "plain close", onclick: () => go({ key: null, range: null }) }, "Close"));
  fill(place, head, h("p", { class: "quiet" }, "Looking …"));
  const asked = place.asked = {};
  try {
    const chart = await pipeline(state.pipeline.name, `process/key?key=${encodeURIComponent(key)}&range=${range}`);
    if (place.asked === asked) fill(place, head, ...shown(chart));
  } catch (error) {
    if (place.asked === asked) fill(place, head, notice("bad", error.message, error.remedy));
  }
}
