// One date, or a range of them: counts, what keeps it open or failing, checks that did not pass, and what can be done.

import { pipeline } from "./api.js";
import { ask } from "./backfill.js";
import { checks } from "./checks.js";
import { select, selection, stateOf } from "./calendar.js";
import { byId, fill, h, notice, pill, table } from "./dom.js";
import { count, moment, seconds, words } from "./format.js";

export const COUNTS = ["accepted", "joined", "pending", "unjoinable", "expired", "filtered", "quarantined"];
const TITLES = { accepted: "accepted ids", landed: "records landed" };

function counts(days) {
  const sum = (name) => days.reduce((whole, day) => whole + day[name], 0);
  const repeated = sum("landed") > sum("accepted");
  return [
    h("dl", { class: "counts" }, COUNTS.map((name) =>
      h("div", {}, h("dt", {}, TITLES[name] ?? name), h("dd", { "data-count": name }, count(sum(name)))))),
    repeated ? h("p", { class: "quiet" }, `${count(sum("landed"))} records landed: some ids came more than once.`) : null,
  ];
}

const DONE = { close: "Last looked at", fill: "Filled", rebuild: "Rebuilt" };

function missing(days) {
  const ids = days.reduce((whole, day) => whole + (day.missing ?? 0), 0);
  return ids ? notice("warn", `${count(ids)} accepted ids are claimed and in no output. Of a batch under way they are there in a moment; `
    + "else rows are gone: Fill verifies the date and repairs it.") : null;
}

function closing(day) {
  const { close } = day;
  if (!close) return h("p", { class: "quiet" }, "This date has never been closed.");
  return [
    close.detail ? notice(stateOf(day) === "failing" ? "bad" : "warn", close.detail) : null,
    h("p", { class: "quiet" }, `${DONE[close.action] ?? words(close.action)} ${moment(close.at)} UTC by ${close.run}, revision ${close.revision ?? "–"}: `
      + `${count(close.accepted)} ids accepted; faults: ${count(close.faults)}; checks failed: ${count(close.failed)}, `
      + `warned: ${count(close.warned)}; took ${seconds(close.seconds)}`),
  ];
}

function actions(state, days) {
  const { from, to } = selection();
  const input = (name, value) => h("label", {}, name, h("input", { type: "date", name, value, required: true, max: new Date().toISOString().slice(0, 10) }));
  const start = (mode) => (event) => {
    const form = event.target.closest("form");
    if (form.reportValidity()) ask(state, { from: form.elements.from.value, to: form.elements.to.value, mode });
  };
  const form = h("form", { class: "range", id: "range", onsubmit: (event) => event.preventDefault() },
    input("from", from), input("to", to),
    h("button", { type: "button", class: "strong", onclick: start("fill") }, "Fill"),
    h("button", { type: "button", onclick: start("rebuild") }, "Rebuild"));
  form.addEventListener("change", () => ranged(form, state, days));
  if (state.pipeline.may_backfill) return form;
  return h("p", { class: "quiet" }, "Your role in Airflow does not allow backfills.");
}

function ranged(form, state, days) {
  const [from, to] = [form.elements.from.value, form.elements.to.value];
  if (!from || !to || from > to) return;
  select(from, to);
  showDay(state, days);
}

export async function showDay(state, days) {
  const { from, to } = selection();
  const among = days.filter((day) => day.date >= from && day.date <= to);
  if (!from) return fill("day", h("p", { class: "quiet" }, "Choose a date to see what became of it."));
  const one = from === to ? among[0] : null;
  const title = from === to ? from : `${from} to ${to}`;
  const place = h("div", { id: "checks" });
  const kinds = Object.entries(Object.groupBy(among, stateOf)).map(([kind, part]) => pill(kind, one ? kind : `${part.length} ${kind}`));
  fill("day", h("header", { class: "row" }, h("h3", {}, title), kinds),
    counts(among), missing(among), one ? closing(one) : null, place,
    actions(state, days));
  if (one) await fetched(state, one.date, place);
  return byId("day");
}

async function fetched(state, date, place) {
  try {
    fill(place, checks(await pipeline(state.pipeline.name, `dates/${date}/checks`), state));
  } catch (error) {
    fill(place, notice("bad", error.message, error.remedy));
  }
}

export function showTable(days) {
  const columns = [["date", (day) => day.date], ["state", (day) => pill(stateOf(day), stateOf(day))],
    ...[...COUNTS, "landed"].map((name) => [TITLES[name] ?? name, (day) => count(day[name]), "number"])];
  fill("by-date", table(columns, [...days].reverse(), { caption: "Ids by date of their own time, UTC; quarantined: records, by the day they were set aside; landed: records, repeats too" }));
}
