// The backfills that Airflow knows of, followed until they have ended.

import { airflow } from "./api.js";
import { byId, fill, h, notice, outside, pill, table } from "./dom.js";
import { moment, seconds } from "./format.js";

const ENDED = new Set(["success", "failed"]);
const KIND = { success: "closed", failed: "failing", running: "open", queued: "unknown" };
const PAUSE = 2000;

let timer = 0;
let ended = null;

function page(run) {
  return `../dags/${encodeURIComponent(run.dag_id)}/runs/${encodeURIComponent(run.dag_run_id)}`;
}

function shown(runs) {
  return table([
    ["state", (run) => pill(KIND[run.state] ?? "unknown", run.state)],
    ["dates", (run) => (run.conf?.from ? `${run.conf.from} to ${run.conf.to || run.conf.from}` : "as the form had them")],
    ["what", (run) => `${run.conf?.mode ?? "fill"}${run.conf?.dry_run ? ", dry run" : ""}`],
    ["asked for", (run) => `${moment(run.queued_at ?? run.run_after)} by ${run.triggering_user_name ?? run.run_type}`],
    ["took", (run) => seconds(run.duration), "number"],
    ["", (run) => outside(page(run), "Open the run")],
  ], runs, { caption: "The last backfills; times UTC", empty: "None has been asked for." });
}

// What to do when a run that was under way has ended.
export function onEnd(then) {
  ended = then;
}

export async function follow(state, before = new Set()) {
  clearTimeout(timer);
  const dag = encodeURIComponent(state.pipeline.backfill_dag);
  let runs;
  try {
    runs = (await airflow("GET", `dags/${dag}/dagRuns?limit=8&order_by=-id`)).dag_runs;
  } catch (error) {
    fill("runs", error.status === 404 ? h("p", { class: "quiet" }, `Airflow knows no DAG ${state.pipeline.backfill_dag}.`)
      : notice("warn", error.message, error.remedy));
    return;
  }
  fill("runs", shown(runs));
  byId("runs").dataset.states = runs.map((run) => run.state).join(" ");
  const under = new Set(runs.filter((run) => !ENDED.has(run.state)).map((run) => run.dag_run_id));
  if ([...before].some((run) => !under.has(run))) ended?.();
  if (under.size) timer = setTimeout(() => follow(state, under), PAUSE);
}
