// The quality checks of a date: those that did not pass first, each with its figures over all dates.

import { pipeline } from "./api.js";
import { draw } from "./charts.js";
import { fill, h, notice, pill } from "./dom.js";
import { count, figure, seconds, words } from "./format.js";

const KIND = { failed: "failing", warned: "open", undecided: "unknown", passed: "closed" };
const plural = (number) => (number === 1 ? "1 quality check" : `${number} quality checks`);

export function checks(rows, state) {
  const among = (...outcomes) => rows.filter((row) => outcomes.includes(row.outcome));
  const [red, open, good] = [among("failed", "warned"), among("undecided"), among("passed")];
  const decided = rows.length - open.length;
  const list = (part) => h("ul", { class: "checks" }, part.map((row) => check(row, state)));
  if (!rows.length) return h("p", { class: "quiet" }, "No quality check has run over this date.");
  return [
    red.length ? [h("h4", {}, `${red.length} of ${plural(decided)} did not pass`), list(red)]
      : decided ? h("p", {}, pill("closed", "passed"), ` All ${plural(decided)} passed.`) : null,
    open.length ? h("details", { class: "undecided" }, h("summary", {}, `${open.length} undecided: no rows, or too few earlier dates`), list(open)) : null,
    good.length ? h("details", { class: "undecided passed" }, h("summary", {}, `${good.length} passed`), list(good)) : null,
  ];
}

const isTime = (row) => (row.expected ?? "").startsWith("seconds");

function observed(row) {
  if (row.unexpected) return `${count(row.unexpected)} rows${row.share ? `, ${figure(100 * row.share)} % of them` : ""}`;
  if (row.observed === null) return "";
  return `found ${isTime(row) ? seconds(row.observed) : figure(row.observed)}`;
}

// `column_values_to_be_between.item_id`: a column keeps the name that it has.
function named(check) {
  const [kind, ...column] = check.split(".");
  return [words(kind), column.join(".")].filter(Boolean).join(": ");
}

const LEVEL = { fail: "critical", warn: "warning" };

function check(row, state) {
  const samples = row.samples.filter((sample) => typeof sample !== "object").slice(0, 5).join(", ");
  const place = h("div", { class: "over-dates" });
  const more = h("button", { type: "button", class: "plain", "aria-expanded": "false", onclick: () => toggled(row, state, place, more) }, "Over dates");
  return h("li", {}, h("div", {}, pill(KIND[row.outcome], row.outcome), " ", h("b", {}, `${row.suite}: ${named(row.check)}`), " ",
    h("span", { class: "quiet" }, LEVEL[row.level] ?? row.level), " ", more),
    row.detail ? h("p", {}, row.detail) : null,
    h("p", { class: "quiet" }, [row.expected ? `expected ${row.expected}` : "", observed(row)].filter(Boolean).join(", "),
      samples ? [", such as ", h("code", {}, samples)] : null), place);
}

async function toggled(row, state, place, button) {
  const shown = place.hasChildNodes();
  button.setAttribute("aria-expanded", String(!shown));
  fill(place);
  if (shown) return;
  try {
    const dates = await pipeline(state.pipeline.name, `check?name=${encodeURIComponent(`${row.suite}.${row.check}`)}`);
    overDates(row, dates.filter((date) => date.observed !== null), place);
  } catch (error) {
    fill(place, notice("bad", error.message, error.remedy));
  }
}

function overDates(row, dates, place) {
  if (!dates.length) return fill(place, h("p", { class: "quiet" }, "No date has a figure of it."));
  const red = (date) => ["failed", "warned"].includes(date.outcome);
  draw(place, [{
    id: `check-${row.suite}-${row.check}`, title: named(row.check), hint: "by date of the events' own time", group: "checks", least: 0, dated: true,
    unit: isTime(row) ? seconds : figure, at: dates.map((date) => Date.parse(`${date.date}T00:00:00Z`) / 1000),
    series: [{ label: "observed", colour: "--strong", values: dates.map((date) => date.observed) },
      { label: "did not pass", colour: "--failing", values: dates.map((date) => (red(date) ? date.observed : null)) }],
  }]);
  return place;
}
