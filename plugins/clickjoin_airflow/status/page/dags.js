// The pipeline's DAGs that run by themselves, as Airflow knows them: paused or not, and how the newest run of each went.

import { airflow } from "./api.js";
import { fill, h, outside, pill } from "./dom.js";
import { moment } from "./format.js";

const KIND = { success: "closed", failed: "failing", running: "open", queued: "unknown" };
const ORDER = ["join", "retry", "gc", "verify"]; // those that a pipeline needs most come first

const roleOf = (dag) => dag.dag_id.slice("clickjoin_".length).split("__")[0];
const rank = (dag) => (ORDER.includes(roleOf(dag)) ? ORDER.indexOf(roleOf(dag)) : ORDER.length);

async function newest(dag) {
  const found = await airflow("GET", `dags/${encodeURIComponent(dag.dag_id)}/dagRuns?limit=1&order_by=-id`).catch(() => null);
  return { dag, run: found?.dag_runs[0] };
}

function shown({ dag, run }) {
  const state = run?.state ?? "never ran";
  const at = run?.end_date ?? run?.start_date;
  const title = `${dag.dag_id}: ${dag.is_paused ? "paused; last run " : ""}${state}${at ? `, ${moment(at)} UTC` : ""}`;
  return h("li", { title, "data-dag": roleOf(dag) }, outside(`../dags/${encodeURIComponent(dag.dag_id)}`, roleOf(dag)), " ",
    dag.is_paused ? pill("unknown", "paused") : null, run || !dag.is_paused ? pill(KIND[state] ?? "unknown", state) : null);
}

// Who may not read them, or where Airflow has not parsed them yet, sees none: the figures stand all the same.
export async function showDags(state) {
  const { name } = state.pipeline;
  const tags = `tags=clickjoin&tags=${encodeURIComponent(name)}&tags_match_mode=all`;
  try {
    const { dags } = await airflow("GET", `dags?${tags}&exclude_stale=true&limit=50`);
    const ours = dags.filter((dag) => dag.timetable_summary && dag.dag_id.endsWith(`__${name}`))
      .sort((one, other) => rank(one) - rank(other) || one.dag_id.localeCompare(other.dag_id));
    const found = await Promise.all(ours.map(newest));
    if (name === state.pipeline.name) fill("dags", found.length ? h("ul", { class: "legend", "aria-label": "DAGs" }, found.map(shown)) : null);
  } catch {
    fill("dags");
  }
}
