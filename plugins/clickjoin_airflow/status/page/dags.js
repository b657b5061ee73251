// The pipeline's DAGs that run by themselves, as Airflow knows them: paused or not, and how the newest run of each went.

import { airflow } from "./api.js";
import { fill, h, notice, outside, pill } from "./dom.js";
import { moment } from "./format.js";

const bad = (trouble) => (trouble.state === "running" ? "open" : "failing");
const KIND = { success: "closed", failed: "failing", running: "open", queued: "unknown" };
const ORDER = ["join", "retry", "gc", "verify"]; // those that a pipeline needs most come first

const roleOf = (dag) => dag.dag_id.slice("clickjoin_".length).split("__")[0];
const rank = (dag) => (ORDER.includes(roleOf(dag)) ? ORDER.indexOf(roleOf(dag)) : ORDER.length);

async function newest(dag) {
  const runs = `dags/${encodeURIComponent(dag.dag_id)}/dagRuns`;
  const found = await airflow("GET", `${runs}?limit=4&order_by=-id`).catch(() => null);
  return { dag, run: found?.dag_runs[0], trouble: found && !dag.is_paused ? await firstTrouble(runs, found.dag_runs) : null };
}

// Of the newest runs back to one that succeeded: what failed is not over because the next has begun.
async function firstTrouble(path, runs) {
  for (const run of runs) {
    if (run.state === "success") return null;
    const trouble = await troubleOf(`${path}/${encodeURIComponent(run.dag_run_id)}`, run).catch(() => null);
    if (trouble) return trouble;
  }
  return null;
}

// Airflow drops what a try said as the next one begins: this page goes on saying it until that one has ended.
const reasons = new Map();

// The task that fails or is tried again, and why, as it said itself (clickjoin_airflow.operator.FAILURE).
async function troubleOf(path, run) {
  if (run.state !== "running" && run.state !== "failed") return null;
  const { task_instances: tasks } = await airflow("GET", `${path}/taskInstances?limit=50`);
  const task = tasks.find((one) => one.state === "up_for_retry" || one.state === "failed")
    ?? tasks.find((one) => one.state === "running" && one.try_number > 1);
  if (!task) return null;
  const key = `${path}/taskInstances/${encodeURIComponent(task.task_id)}/xcomEntries/clickjoin_failure?map_index=${task.map_index}`;
  const said = await airflow("GET", key).catch(() => null);
  if (said) reasons.set(key, plain(said.value));
  return { state: task.state, tries: task.try_number, why: reasons.get(key) ?? "" };
}

function plain(value) {
  try {
    return String(JSON.parse(value));
  } catch {
    return String(value);
  }
}

const TRIED = { up_for_retry: "failed, and is tried again", failed: "failed", running: "failed, and is under way again" };

function said({ dag, trouble }) {
  const why = trouble.why ? `: ${trouble.why}` : " (why is in the task's log)";
  return `${roleOf(dag)} ${TRIED[trouble.state]} (try ${trouble.tries})${why}`;
}

function shown({ dag, run, trouble }) {
  const state = trouble ? TRIED[trouble.state] : run?.state ?? "never ran";
  const at = run?.end_date ?? run?.start_date;
  const title = `${dag.dag_id}: ${dag.is_paused ? "paused; last run " : ""}${state}${at ? `, ${moment(at)} UTC` : ""}`;
  return h("li", { title, "data-dag": roleOf(dag) }, outside(`../dags/${encodeURIComponent(dag.dag_id)}`, roleOf(dag)), " ",
    dag.is_paused ? pill("unknown", "paused") : null, run || !dag.is_paused ? pill(trouble ? bad(trouble) : KIND[state] ?? "unknown", state) : null);
}

function notices(found) {
  fill("dags-notices", found.filter((one) => one.trouble)
    .map((one) => notice(bad(one.trouble) === "failing" ? "bad" : "warn", said(one))));
}

// Who may not read them, or where Airflow has not parsed them yet, sees none: the figures stand anyway.
export async function showDags(state) {
  const { name } = state.pipeline;
  const tags = `tags=clickjoin&tags=${encodeURIComponent(name)}&tags_match_mode=all`;
  try {
    const { dags } = await airflow("GET", `dags?${tags}&exclude_stale=true&limit=50`);
    const ours = dags.filter((dag) => dag.timetable_summary && dag.dag_id.endsWith(`__${name}`))
      .sort((one, other) => rank(one) - rank(other) || one.dag_id.localeCompare(other.dag_id));
    const found = await Promise.all(ours.map(newest));
    if (name !== state.pipeline.name) return;
    notices(found);
    fill("dags", found.length ? h("ul", { class: "legend", "aria-label": "DAGs" }, found.map(shown)) : null);
  } catch {
    fill("dags-notices");
    fill("dags");
  }
}
