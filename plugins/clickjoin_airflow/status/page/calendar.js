// Months of dates, each in the colour of its state. A click chooses a date, with Shift a range.

import { fill, h } from "./dom.js";
import { count } from "./format.js";

export const STATES = {
  closed: "complete, verified and checked",
  failing: "something failed",
  open: "its input is not all there yet",
  unknown: "never closed",
};
const MONTHS = 6;
const DAYS = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];

let chosen = { from: null, to: null };
let wholeHistory = false;

export const selection = () => ({ ...chosen });
export const stateOf = (day) => day.state ?? "unknown";

function label(date, day) {
  if (!day) return `${date}: no events`;
  return `${date}: ${stateOf(day)}, ${count(day.joined)} joined`;
}

function cell(date, day, choose) {
  const inside = chosen.from && date >= chosen.from && date <= chosen.to;
  const props = {
    type: "button", class: `date ${day ? stateOf(day) : "none"}${inside ? " chosen" : ""}`, "data-date": date,
    "aria-label": label(date, day), "aria-pressed": String(Boolean(inside)), title: label(date, day),
    onclick: (event) => choose(date, event.shiftKey),
  };
  return h("button", props, String(Number(date.slice(8))));
}

function month(name, days, choose) {
  const first = new Date(`${name}-01T00:00:00Z`);
  const length = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  const before = Array.from({ length: (first.getUTCDay() + 6) % 7 }, () => h("span", {}));
  const dates = Array.from({ length }, (_, index) => `${name}-${String(index + 1).padStart(2, "0")}`);
  const title = first.toLocaleString("en", { month: "long", year: "numeric", timeZone: "UTC" });
  return h("div", { class: "month", role: "group", "aria-label": title }, h("h4", {}, title),
    h("div", { class: "grid" }, DAYS.map((day) => h("span", { class: "weekday", "aria-hidden": "true" }, day)), before,
      dates.map((date) => cell(date, days.get(date), choose))));
}

function legend() {
  return h("ul", { class: "legend" }, Object.entries(STATES).map(([state, meaning]) =>
    h("li", {}, h("span", { class: `swatch ${state}` }), h("b", {}, state), ` ${meaning}`)));
}

export function showCalendar(dates, changed) {
  const days = new Map(dates.map((day) => [day.date, day]));
  const months = [...new Set(dates.map((day) => day.date.slice(0, 7)))].sort();
  const shown = wholeHistory ? months : months.slice(-MONTHS);
  const again = () => showCalendar(dates, changed);
  const choose = (date, range) => {
    const anchor = range && chosen.from ? chosen.anchor : date;
    chosen = { anchor, from: anchor < date ? anchor : date, to: anchor < date ? date : anchor };
    again();
    document.querySelector(`#calendar [data-date="${date}"]`)?.focus();
    changed();
  };
  const older = () => {
    wholeHistory = true;
    again();
  };
  fill("calendar", legend(),
    shown.length < months.length ? h("button", { type: "button", class: "plain", onclick: older }, `${months.length - shown.length} older months`) : null,
    h("div", { class: "months" }, shown.map((name) => month(name, days, choose))),
    months.length ? null : h("p", { class: "quiet" }, "No events yet."));
}

export function select(from, to) {
  chosen = { anchor: from, from, to };
}
