// Which pipelines have a DAG that fails, as Airflow alone knows it: their tabs have a dot.

import { airflow } from "./api.js";

const DAY = 86_400_000;

// A DAG fails whose newest finished run failed: the one that follows may wait in the queue for long. Those started by hand do not count.
async function failed() {
  const since = encodeURIComponent(new Date(Date.now() - DAY).toISOString());
  const { dag_runs: runs } = await airflow("GET", `dags/~/dagRuns?state=failed&end_date_gte=${since}&order_by=-end_date&limit=100`);
  const newest = new Map();
  for (const run of runs) if (run.run_type !== "manual" && !newest.has(run.dag_id)) newest.set(run.dag_id, run);
  const passed = await Promise.all([...newest.values()].map((run) => airflow("GET",
    `dags/${encodeURIComponent(run.dag_id)}/dagRuns?state=success&end_date_gte=${encodeURIComponent(run.end_date)}&limit=1`)));
  return [...newest.keys()].filter((_, index) => !passed[index].total_entries);
}

async function triedAgain() {
  const { task_instances: tasks } = await airflow("GET", "dags/~/dagRuns/~/taskInstances?state=up_for_retry&state=running&limit=100");
  return tasks.filter((task) => task.state === "up_for_retry" || task.try_number > 1).map((task) => task.dag_id);
}

// By pipeline, the DAGs; none for who may not read them.
export async function failing() {
  const dags = (await Promise.all([failed(), triedAgain()].map((one) => one.catch(() => [])))).flat();
  const found = new Map();
  for (const dag of new Set(dags)) {
    const [role, ...name] = dag.split("__");
    if (role.startsWith("clickjoin_")) found.set(name.join("__"), [...found.get(name.join("__")) ?? [], dag]);
  }
  return found;
}
