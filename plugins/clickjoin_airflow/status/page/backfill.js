// Asking for a backfill: it says what will be done, then Airflow runs it as the user who is logged in.

import { airflow } from "./api.js";
import { byId, fill, h, notice } from "./dom.js";
import { follow } from "./runs.js";

const MEANS = {
  fill: "Joins what these dates lack and closes them again. Rows that are in the output stay as they are.",
  rebuild: "Rebuilds the output of these dates from the landed records, and puts it in the place of what is there. "
    + "Readers see the old rows until the new ones are all in place.",
};
const MOST_DAYS = 366;

function days(from, to) {
  return Math.round((Date.parse(to) - Date.parse(from)) / 86400000) + 1;
}

function unfit(from, to) {
  if (from > to) return "The first date lies after the last one.";
  return days(from, to) > MOST_DAYS ? `That is more than ${MOST_DAYS} dates: ask for fewer.` : "";
}

export async function ask(state, wanted) {
  const dialog = byId("confirm");
  const dag = state.pipeline.backfill_dag;
  const wrong = unfit(wanted.from, wanted.to);
  if (wrong) return say(dialog, wrong);
  let known;
  try {
    known = await airflow("GET", `dags/${encodeURIComponent(dag)}`);
  } catch (error) {
    return say(dialog, error.status === 404 ? `Airflow knows no DAG ${dag}.` : error.message,
      error.status === 404 ? "It is made of the pipeline's file: look for import errors in Airflow." : error.remedy);
  }
  return show(dialog, state, wanted, known.is_paused);
}

function say(dialog, message, remedy = "") {
  fill(dialog, notice("bad", message, remedy), h("p", { class: "row" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

function show(dialog, state, wanted, paused) {
  const { from, to, mode } = wanted;
  const number = days(from, to);
  const title = `${mode === "fill" ? "Fill" : "Rebuild"} ${number === 1 ? from : `${number} dates, ${from} to ${to}`}`;
  const problem = h("div", {});
  const form = h("form", { method: "dialog", onsubmit: (event) => {
    event.preventDefault();
    start(dialog, state, wanted, form, problem);
  } },
  h("h2", { id: "confirm-title" }, `${title} of ${state.pipeline.name}?`), h("p", {}, MEANS[mode]),
  h("label", { class: "check" }, h("input", { type: "checkbox", name: "dry_run" }), "Dry run: say what would be done, and change nothing"),
  paused ? h("label", { class: "check" }, h("input", { type: "checkbox", name: "unpause", checked: true }),
    "The DAG is paused: switch it on, or the run waits until someone does") : null,
  problem,
  h("p", { class: "row end" }, h("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Cancel"),
    h("button", { class: "strong", name: "start" }, mode === "fill" ? "Fill" : "Rebuild")));
  fill(dialog, form);
  dialog.showModal();
}

async function start(dialog, state, { from, to, mode }, form, problem) {
  const dag = encodeURIComponent(state.pipeline.backfill_dag);
  form.elements.start.disabled = true;
  try {
    if (form.elements.unpause?.checked) await airflow("PATCH", `dags/${dag}?update_mask=is_paused`, { is_paused: false });
    const conf = { from, to, mode, dry_run: form.elements.dry_run.checked };
    await airflow("POST", `dags/${dag}/dagRuns`, { logical_date: null, conf, note: "from the status page" });
    dialog.close();
    follow(state);
  } catch (error) {
    fill(problem, notice("bad", error.message, error.remedy));
    form.elements.start.disabled = false;
  }
}
