// What happened over time.

import { byId } from "./dom.js";
import { draw } from "./charts.js";
import { brief, count, seconds } from "./format.js";

const STEPS = ["plan", "land", "lookup", "claim", "publish", "settle"];

const line = (label, values, colour, fill = false) => ({ label, values, colour, fill });
// The newest span of time is not over: as a rate it would always fall.
const rate = (values, width) => values.map((value, at) => (at === values.length - 1 ? null : value / width));

function charts(series) {
  const { at, seconds: width } = series;
  const perSecond = (value) => (value === null || value === undefined ? "–" : `${brief(value)}/s`);
  return [
    { id: "latency", title: "Latency", hint: "Event to output, of join batches; weighted by their joined events.", unit: seconds,
      series: [line("p50", series.p50, "--c2"), line("p90", series.p90, "--c1", true), line("p99", series.p99, "--c4")] },
    { id: "throughput", title: "Throughput", hint: "Ids accepted (a repeat is none), and ids joined.", unit: perSecond,
      series: [line("accepted", rate(series.accepted, width), "--c2"), line("joined", rate(series.joined, width), "--c1", true)] },
    { id: "backlog", title: "Backlog", hint: "Most events that a batch left unplanned.", unit: count, least: 5,
      series: [line("events", series.backlog_events, "--c5", true)] },
    { id: "steps", title: "Seconds per step", hint: "Mean of the join batches.", unit: seconds, stacked: true,
      series: STEPS.map((step, index) => line(step, series[step], `--c${index + 1}`)) },
    { id: "aside", title: "Not joined", hint: "Events of each span of time that did not join then, and bad records.", unit: count, least: 5,
      series: ["pending", "unjoinable", "expired", "filtered", "quarantined"].map((name, index) => line(name, series[name], `--c${index + 2}`)) },
    { id: "repeats", title: "Repeats and conflicts", hint: "Wasted joins were found taken by another batch.", unit: count, least: 5,
      series: [line("repeats", series.repeats, "--c2"), line("wasted", series.wasted, "--c4"), line("conflicts", series.conflict_reruns, "--c5")] },
  ].map((chart) => ({ ...chart, at }));
}

export function showSeries(series) {
  draw(byId("charts"), charts(series));
}
