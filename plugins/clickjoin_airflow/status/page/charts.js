// Line and area charts, drawn by uPlot in the colours of the page.

import { h } from "./dom.js";

const HEIGHT = 180;
const drawn = new Map();

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axes(unit, dated) {
  const common = { stroke: () => colour("--quiet"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false } };
  return [
    { ...common, space: 70, size: 32, values: dated ? dates : times },
    { ...common, size: 58, values: (plot, ticks) => ticks.map((tick) => unit(tick)) },
  ];
}

const dates = (plot, ticks) => ticks.map((tick) => (tick % 86400 ? "" : new Date(tick * 1000).toISOString().slice(5, 10)));

function times(plot, ticks) {
  const wide = plot.scales.x.max - plot.scales.x.min > 3 * 86400;
  return ticks.map((tick) => {
    const text = new Date(tick * 1000).toISOString();
    return wide ? text.slice(5, 10) : text.slice(11, 16);
  });
}

function lines(series, unit, stacked) {
  return [
    { label: "UTC", value: (plot, tick) => (tick === null ? "–" : new Date(tick * 1000).toISOString().slice(0, 16).replace("T", " ")) },
    ...series.map((one, index) => ({
      label: one.label,
      class: one.label.replaceAll(" ", "-"),
      stroke: () => colour(one.colour),
      fill: stacked || one.fill ? () => `${colour(one.colour)}${stacked ? "" : "22"}` : undefined,
      width: stacked ? 1 : 1.75,
      points: { show: true, size: 5, fill: () => colour(one.colour), filter: alone },
      gaps: wideGaps,
      value: (plot, value, number, at) => (at === null ? "–" : unit(series[index].values[at])),
    })),
  ];
}

// Each series lies on those before it; drawn from the top, so that none is covered.
function stack(series) {
  const below = [];
  return series.map((one) => one.values.map((value, at) => {
    below[at] = (below[at] ?? 0) + (value ?? 0);
    return series.every((other) => other.values[at] === null) ? null : below[at];
  }));
}

function plotted(chart) {
  const order = chart.stacked ? [...chart.series].reverse() : chart.series;
  const values = chart.stacked ? stack(chart.series).reverse() : chart.series.map((one) => one.values);
  return { order, data: [chart.at, ...values] };
}

// Spans without batches shorter than this are drawn through, wider ones are gaps.
const GAP_BINS = 5;

function wideGaps(plot, number, from, to, gaps) {
  const bin = plot.bbox.width / Math.max(plot.data[0].length - 1, 1);
  return gaps.filter(([left, right]) => right - left > GAP_BINS * bin);
}

// A value between two gaps would be a line of no length.
function alone(plot, number) {
  const values = plot.data[number];
  const near = (at) => values.slice(Math.max(at - GAP_BINS, 0), at).some((value) => value !== null)
    || values.slice(at + 1, at + 1 + GAP_BINS).some((value) => value !== null);
  return values.flatMap((value, at) => (value === null || near(at) ? [] : [at]));
}

function build(place, chart) {
  const { order, data } = plotted(chart);
  const options = {
    width: Math.max(place.clientWidth, 200),
    height: HEIGHT,
    series: lines(order, chart.unit, chart.stacked),
    axes: axes(chart.unit, chart.dated),
    scales: { x: { time: true }, y: { range: (plot, low, high) => [0, Math.max(high * 1.08, chart.least ?? 1)] } },
    cursor: { sync: { key: chart.group ?? "time" }, y: false, drag: { setScale: false, x: false, y: false } },
    legend: { live: true },
    tzDate: (tick) => new Date(tick * 1000),
  };
  return new window.uPlot(options, data, place);
}

const sized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const held = [...drawn.values()].find((one) => one.place === target);
    const width = Math.max(target.clientWidth, 200);
    if (held?.plot && Math.abs(held.plot.width - width) > 1) held.plot.setSize({ width, height: HEIGHT });
  }
});

function reserve(parent, chart) {
  const place = h("div", { class: "plot" });
  parent.append(h("figure", { class: "card", id: `chart-${chart.id}` },
    h("figcaption", {}, h("h3", {}, chart.title), h("p", { class: "quiet" }, chart.hint)), place));
  sized.observe(place);
  drawn.set(chart.id, { place, plot: null });
}

// charts: { id, title, hint, at, series: [{ label, values, colour, fill }], unit, stacked, group, least, dated }
export function draw(parent, charts) {
  for (const chart of charts) if (!drawn.get(chart.id)?.place.isConnected) reserve(parent, chart);
  for (const chart of charts) {
    const held = drawn.get(chart.id);
    held.plot?.destroy();
    held.chart = chart;
    held.plot = build(held.place, chart);
    held.place.setAttribute("role", "img");
    held.place.setAttribute("aria-label", spoken(chart));
  }
}

function spoken(chart) {
  const last = (values) => values.findLast((value) => value !== null);
  const parts = chart.series.map((one) => `${one.label} ${last(one.values) === undefined ? "no value" : chart.unit(last(one.values))}`);
  return `${chart.title}, newest: ${parts.join(", ")}`;
}

function again() {
  for (const held of drawn.values()) {
    if (!held.place.isConnected || !held.plot) continue;
    held.plot.destroy();
    held.plot = build(held.place, held.chart);
  }
}

let waiting = 0;
function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(again, 120);
}
addEventListener("themed", soon);
