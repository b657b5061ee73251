// What is shown, of which pipeline; kept in the address after #, and read again every few seconds.

import { get, pipeline } from "./api.js";
import { showBatches } from "./batches.js";
import { showChain } from "./chain.js";
import { showCalendar } from "./calendar.js";
import { showDags } from "./dags.js";
import { showDay, showTable } from "./day.js";
import { byId, fill, h, notice } from "./dom.js";
import { explain } from "./explain.js";
import { showFigures } from "./figures.js";
import { showFound } from "./found.js";
import { glance } from "./glance.js";
import { gone, goneNotice } from "./gone.js";
import { failing } from "./health.js";
import { showKey, showProcess } from "./process.js";
import { showRegistry } from "./registry.js";
import { follow, onEnd } from "./runs.js";
import { showSeries } from "./series.js";

const OFTEN = 10_000;
const SOON = 20_000;
const SELDOM = 40_000;
const AGAIN = 10_000;
const WINDOWS = { 1: "1 hour", 24: "24 hours", 168: "7 days", 720: "30 days", 2160: "90 days" };
const state = { pipeline: null, hours: 24, replica: "", live: null, overview: null, missing: new Map(), link };
const problems = new Map();

const address = () => new URLSearchParams(location.hash.slice(1));

// The pipeline that this browser saw last; storage may be refused.
function last(name) {
  try {
    if (name) localStorage.setItem("clickjoin-pipeline", name);
    return localStorage.getItem("clickjoin-pipeline");
  } catch {
    return null;
  }
}

// The address with some fields changed; empty ones go.
function link(changes) {
  const found = address();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") found.delete(name);
    else found.set(name, value);
  }
  return found.toString();
}

function go(changes) {
  location.hash = link(changes);
}

// One part of the page: what cannot be read is said, and stops no other part.
async function part(name, path, show) {
  const wanted = state.pipeline.name;
  try {
    const found = await pipeline(wanted, path);
    if (wanted !== state.pipeline.name) return;
    problems.delete(name);
    show(found);
  } catch (error) {
    problems.set(name, error);
  }
  notices();
}

function notices() {
  const found = new Map([...problems.values()].map((error) => [error.message, error]));
  fill("notices", [...found.values()].map((error) => notice("bad", `${state.pipeline?.name ?? "clickjoin"}: ${error.message}`, error.remedy)),
    (state.broken ?? []).map((file) => notice("warn", `${file.file}: no pipeline can be made of this file`, file.problem)));
}

function overview() {
  const path = `overview?hours=${state.hours}&replica=${encodeURIComponent(state.replica)}`;
  return part("overview", path, shownOverview).finally(() => byId("charts").classList.remove("busy"));
}

function shownOverview(found) {
  if (found.series.hours !== state.hours) return; // another range was chosen meanwhile
  state.overview = found;
  showFigures(found, state.live);
  replicas(Object.keys(found.replicas));
  showSeries(found.series);
}

const backlog = () => part("backlog", "backlog", (found) => {
  state.live = found;
  if (state.overview) showFigures(state.overview, found);
});

const dates = () => part("dates", "dates", (found) => {
  const changed = () => showDay(state, found.dates);
  glance({ dates: found.dates });
  rowsGone(found.dates);
  fill("dates-notices", found.problems.map((problem) => notice("bad", problem)));
  showCalendar(found.dates, changed);
  if (!byId("day").contains(document.activeElement)) changed();
  showTable(found.dates);
});

function rowsGone(days) {
  const { missing, still, unsure } = gone(days, state.missing);
  state.missing = missing;
  fill("gone-notices", goneNotice(still));
  if (unsure) setTimeout(() => dates(), AGAIN);
}

const batches = () => part("batches", "batches", showBatches);
const found = () => part("found", "found", (runs) => {
  glance({ verifications: runs.verifications });
  fill("ids-notices", runs.frequent_ids.map((said) => notice("warn", said)));
  showFound(runs);
});
const chain = () => part("chain", "chain", (parts) => showChain(parts, state.pipeline.name));
const processing = () => part("process", "process", (found) => showProcess(found, state));
const registry = () => part("registry", "registry", showRegistry);

async function often() {
  await overview();
  await batches();
}

// What fails, or is behind, shows within a minute.
async function soon() {
  await Promise.all([backlog(), showDags(state), health()]);
}

async function seldom() {
  await Promise.all([dates(), found(), registry(), chain(), processing()]);
}

function replicas(names) {
  const choice = byId("replica");
  choice.hidden = names.length < 2;
  fill(choice, h("option", { value: "" }, "all replicas"), names.map((name) => h("option", { value: name, selected: name === state.replica }, name)));
}

function windows() {
  fill("windows", Object.entries(WINDOWS).map(([hours, text]) => h("button", {
    type: "button", class: "plain", "aria-pressed": String(Number(hours) === state.hours), onclick: () => go({ hours }),
  }, text)));
}

function tabs(pipelines) {
  const dot = (dags) => h("span", { class: "dot", role: "img", "aria-label": "fails", title: `fails: ${dags.join(", ")}` });
  fill("pipelines", pipelines.map((one) => h("a", {
    href: `#${new URLSearchParams({ pipeline: one.name })}`, "aria-current": one.name === state.pipeline?.name ? "page" : null,
  }, one.name, state.failing?.has(one.name) ? dot(state.failing.get(one.name)) : null)));
}

async function health() {
  state.failing = await failing();
  tabs(state.pipelines);
}

async function route() {
  const wanted = address();
  const named = (name) => state.pipelines.find((one) => one.name === name);
  const chosen = named(wanted.get("pipeline")) ?? named(last()) ?? state.pipelines[0];
  last(chosen?.name);
  const other = chosen?.name !== state.pipeline?.name;
  const hours = Number(wanted.get("hours")) in WINDOWS ? Number(wanted.get("hours")) : 24;
  const moved = hours !== state.hours;
  Object.assign(state, { pipeline: chosen, hours });
  tabs(state.pipelines);
  windows();
  byId("pipeline").hidden = !chosen;
  if (!chosen) return empty();
  if (other) begin();
  else if (moved) {
    byId("charts").classList.add("busy");
    overview();
  }
  shown(wanted);
  return undefined;
}

function shown(wanted) {
  const event = wanted.get("event");
  byId("explained").hidden = !event;
  const key = wanted.get("key");
  byId("key").hidden = !key;
  if (key) showKey(state, key, wanted.get("range") ?? "", go);
  if (event) explain(state, event, () => go({ event: null }));
}

function begin() {
  Object.assign(state, { live: null, overview: null, replica: "", missing: new Map() });
  problems.clear();
  glance(null);
  for (const id of ["charts", "figures", "chain", "calendar", "day", "by-date", "found", "registry", "batches", "runs", "dags", "dags-notices", "gone-notices", "ids-notices", "processing", "key"]) fill(id);
  byId("process").hidden = true;
  often().then(soon).then(seldom);
  follow(state);
}

function empty() {
  fill("notices", notice("warn", "There is no pipeline that you may see",
    "A pipeline is a file in dags/pipelines; it is shown to those who may read the DAG that joins it, clickjoin_join__<name> or its group's"));
}

// Again and again while it is seen; the pause begins when all has been answered.
function visibly(action, pause) {
  setTimeout(async () => {
    if (!document.hidden && state.pipeline) await action().catch(() => {});
    visibly(action, pause);
  }, pause);
}

async function start() {
  try {
    Object.assign(state, await get("pipelines"));
  } catch (error) {
    fill("notices", notice("bad", error.message, error.remedy));
    return;
  }
  state.pipelines.sort((one, other) => one.name.localeCompare(other.name));
  const pipelines = state.pipelines;
  state.pipeline = null;
  await route();
  if (pipelines.length) notices();
  addEventListener("hashchange", route);
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    go({ event: byId("event").value.trim() });
  });
  byId("of-key").addEventListener("submit", (event) => {
    event.preventDefault();
    go({ key: byId("which").value, range: null });
  });
  byId("replica").addEventListener("change", (event) => {
    state.replica = event.target.value;
    overview();
  });
  onEnd(() => Promise.all([dates(), found()]));
  visibly(often, OFTEN);
  visibly(soon, SOON);
  visibly(seldom, SELDOM);
}

start();
