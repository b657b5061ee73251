// One key over time: its counts by window, what was expected where that is known, and its signals; as SVG and as a table.

import { h, s, table } from "./dom.js";
import { count, figure, moment, seconds } from "./format.js";

const HEIGHT = 250;
const EDGE = { left: 52, right: 14, top: 22, bottom: 26 };
const STEPS = [60, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const TICKS = 7;

const at = (text) => new Date(text).getTime() / 1000;

// A round number of units for about four lines.
export function step(most) {
  const raw = most / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  return Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw));
}

function scales(chart, width) {
  const [since, until] = [at(chart.since), at(chart.until)];
  const most = Math.max(1, ...chart.counts.map(([, found]) => found), ...chart.bands.map((band) => band.high ?? 0),
    ...chart.signals.filter((one) => at(one.window_end) - at(one.window_start) <= chart.seconds).map((one) => one.count));
  const top = step(most) * Math.ceil((most * 1.08) / step(most));
  const x = (time) => EDGE.left + ((Math.min(Math.max(time, since), until) - since) / (until - since)) * (width - EDGE.left - EDGE.right);
  const y = (value) => HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  return { since, until, top, x, y };
}

function grid({ since, until, top, x, y }, width) {
  const unit = step(top / 1.08);
  const lines = [];
  for (let value = 0; value <= top; value += unit) {
    lines.push(s("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value), class: "grid" }),
      s("text", { x: EDGE.left - 8, y: y(value) + 4, class: "left" }, count(value)));
  }
  const ticks = Math.min(TICKS, Math.floor(width / 90));
  const every = STEPS.find((one) => (until - since) / one <= ticks) ?? 86400 * Math.ceil((until - since) / 86400 / ticks);
  for (let time = Math.ceil(since / every) * every; time < until; time += every) {
    const text = new Date(time * 1000).toISOString();
    lines.push(s("text", { x: x(time), y: HEIGHT - 8, class: "below" }, every >= 86400 ? text.slice(5, 10) : text.slice(11, 16)));
  }
  return lines;
}

// Counts as steps: a span without an event is 0, for all of the range was read.
function steps(chart, { since, until, x, y }) {
  const base = y(0);
  const parts = [`M${x(since)},${base}`];
  let reached = since;
  for (const [begin, found] of chart.counts) {
    if (begin > reached) parts.push(`V${base}H${x(begin)}`);
    reached = begin + chart.seconds;
    parts.push(`V${y(found)}H${x(reached)}`);
  }
  if (reached < until) parts.push(`V${base}`);
  return s("path", { d: `${parts.join("")}H${x(until)}V${base}Z`, class: "events" });
}

function band(one, { x, y }) {
  const [left, right] = [x(at(one.from)), Math.max(x(at(one.to)), x(at(one.from)) + 3)];
  const wide = right - left;
  return s("g", { class: `band ${one.of === "now" ? "now" : ""}` }, s("title", {}, bandWords(one)),
    s("rect", { x: left, width: wide, y: y(one.high), height: Math.max(y(one.low) - y(one.high), 1) }),
    s("line", { x1: left, x2: right, y1: y(one.expected), y2: y(one.expected) }));
}

const KINDS = { spike: "up", dip: "down" };

function mark(signal, chart, { x, y }) {
  const [begin, end] = [at(signal.window_start), at(signal.window_end)];
  const wide = end - begin > chart.seconds;
  const middle = x((begin + end) / 2);
  const kind = KINDS[signal.kind] ?? "other";
  const events = Math.max(signal.count, ...chart.counts.filter(([time]) => time <= begin && begin < time + chart.seconds).map(([, found]) => found));
  const tip = kind === "other" ? EDGE.top : Math.max(y(wide ? 0 : events) - 6, EDGE.top - 6);
  const shape = kind === "up" ? `M${middle},${tip - 11}l6,10h-12z` : kind === "down" ? `M${middle},${tip}l6,-10h-12z`
    : `M${middle},${tip - 10}l5,5l-5,5l-5,-5z`;
  const span = wide ? s("rect", { x: x(begin), width: Math.max(x(end) - x(begin), 2), y: EDGE.top, height: y(0) - EDGE.top, class: "span" }) : null;
  return s("g", { class: `mark ${kind}` }, s("title", {}, signalWords(signal)), ...(span ? [span] : []), s("path", { d: shape }));
}

function incomplete(chart, { until, x, y }) {
  if (!chart.watermark || at(chart.watermark) >= until || at(chart.watermark) <= at(chart.since)) return [];
  const left = x(at(chart.watermark));
  return [s("rect", { x: left, width: x(until) - left, y: EDGE.top, height: y(0) - EDGE.top, class: "open" }),
    s("line", { x1: left, x2: left, y1: EDGE.top - 6, y2: y(0), class: "watermark" }),
    s("text", { x: left - 5, y: EDGE.top - 4, class: "left" }, "watermark")];
}

const range = (low, high) => `${figure(low)} to ${figure(high)}`;

export function bandWords(one) {
  const whose = one.of === "now" ? "expected now, by the key's state" : one.windows > 1
    ? `expected by the ${one.of}, mean of ${one.windows} windows` : `expected by the ${one.of}`;
  return `${moment(one.from)} to ${moment(one.to)}: ${figure(one.expected)} a window, ${range(one.low, one.high)}; ${whose}`;
}

export function signalWords(one) {
  const than = one.expected === null ? "" : `, expected ${figure(one.expected)}, ${range(one.low, one.high)}`;
  return `${one.kind}, ${moment(one.window_start)} to ${moment(one.window_end)}: ${count(one.count)} events${than}`;
}

export function sentence(chart) {
  const whole = chart.counts.reduce((sum, [, found]) => sum + found, 0);
  return `Counts of key ${chart.key}, ${moment(chart.since)} to ${moment(chart.until)} UTC: ${count(whole)} events, ${count(chart.signals.length)} signals`;
}

export function drawing(chart, width) {
  const scale = scales(chart, width);
  return s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": sentence(chart) },
    ...incomplete(chart, scale), ...grid(scale, width), steps(chart, scale), ...chart.bands.map((one) => band(one, scale)),
    ...chart.signals.map((one) => mark(one, chart, scale)));
}

// The same in words: every span with events, or that something was said of.
export function rows(chart) {
  const found = new Map(chart.counts.map(([time, events]) => [time, { time, events, signals: [] }]));
  const floor = (time) => at(chart.since) + Math.floor((time - at(chart.since)) / chart.seconds) * chart.seconds;
  for (const signal of chart.signals) {
    const time = floor(Math.max(at(signal.window_start), at(chart.since)));
    if (!found.has(time)) found.set(time, { time, events: 0, signals: [] });
    found.get(time).signals.push(signal);
  }
  for (const row of found.values()) {
    const within = chart.bands.filter((band) => at(band.from) <= row.time && row.time < at(band.to));
    row.band = within.find((band) => band.of !== "now") ?? within[0];
  }
  return [...found.values()].sort((one, other) => other.time - one.time);
}

export function asTable(chart) {
  return table([
    ["from, UTC", (row) => moment(new Date(row.time * 1000).toISOString())], ["events", (row) => count(row.events), "number"],
    ["expected a window", (row) => figure(row.band?.expected), "number"],
    ["low", (row) => figure(row.band?.low), "number"], ["high", (row) => figure(row.band?.high), "number"],
    ["signals", (row) => row.signals.map((one) => h("div", {}, signalWords(one)))],
  ], rows(chart), { caption: `Spans of ${seconds(chart.seconds)}, newest first`, empty: "No event of this key lies in the output then." });
}
