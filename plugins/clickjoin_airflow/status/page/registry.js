// How the registry is laid out: by bucket, by shard, and the timeline of shards.

import { fill, h, pill, table } from "./dom.js";
import { brief, bytes, count, moment } from "./format.js";
import { draw } from "./charts.js";

function start(bucket) {
  return Date.parse(`${bucket.slice(0, 13)}:${bucket.slice(13, 15)}:00Z`) / 1000;
}

function heat(cells) {
  const buckets = [...new Set(cells.map((cell) => cell.bucket))].sort();
  const shards = [...new Set(cells.map((cell) => cell.shard))].sort((one, other) => one - other);
  const most = Math.max(...cells.map((cell) => cell.rows), 1);
  const known = new Map(cells.map((cell) => [`${cell.bucket} ${cell.shard}`, cell]));
  const square = (bucket, shard) => {
    const cell = known.get(`${bucket} ${shard}`);
    const text = cell ? `${bucket}, shard ${shard}: ${count(cell.rows)} rows, ${bytes(cell.bytes)}, ${cell.files} files` : `${bucket}, shard ${shard}: empty`;
    const node = h("td", { title: text }, h("span", { class: "sr" }, cell ? brief(cell.rows) : "0"));
    node.style.setProperty("--heat", cell ? (0.08 + 0.92 * (cell.rows / most)).toFixed(3) : "0");
    return node;
  };
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Claims by shard and bucket" },
    h("table", { class: "heat" }, h("caption", {}, `Claims by shard, newest ${buckets.length} buckets: ${buckets[0]} to ${buckets.at(-1)}`),
      h("tbody", {}, shards.map((shard) => h("tr", {}, h("th", { scope: "row" }, `shard ${shard}`), buckets.map((bucket) => square(bucket, shard)))))));
}

function shards(found) {
  return table([
    ["shard", (row) => row.shard, "number"], ["rows", (row) => count(row.rows), "number"], ["size", (row) => bytes(row.bytes), "number"],
    ["files", (row) => count(row.files), "number"], ["answers from", (row) => (row.boundary ? moment(row.boundary) : "the beginning")],
  ], Object.entries(found).map(([shard, size]) => ({ shard, ...size })), { caption: "By shard; times UTC" });
}

function timeline(entries) {
  const first = (row) => (row.since.startsWith("1970") ? "the beginning" : moment(row.since));
  return table([
    ["events from", first], ["shards", (row) => row.shards, "number"], ["added", (row) => moment(row.added_at)],
    ["", (row) => pill(row.void ? "unknown" : "closed", row.void ? "void" : "in force")],
  ], entries, { caption: "Timeline of shards; times UTC" });
}

export function showRegistry(found) {
  const { buckets } = found;
  const charts = h("div", { class: "charts" });
  fill("registry", charts, found.cells.length ? heat(found.cells) : null,
    h("div", { class: "halves" }, shards(found.shards), timeline(found.timeline)));
  if (buckets.length < 2) return;
  const at = buckets.map((one) => start(one.bucket));
  const chart = (id, title, name, unit, colour) => ({ id, title, hint: "By bucket of event time.", at, unit, group: "buckets",
    series: [{ label: title.toLowerCase(), values: buckets.map((one) => one[name]), colour, fill: true }] });
  draw(charts, [chart("claims", "Claims", "rows", count, "--c1"), chart("claim-bytes", "Bytes", "bytes", bytes, "--c3")]);
}
