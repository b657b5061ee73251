// Where one event is, and its whole way there.

import { pipeline } from "./api.js";
import { byId, fill, h, notice, pill } from "./dom.js";
import { indent } from "./indent.js";
import { moment, words } from "./format.js";

const KIND = { joined: "closed", filtered: "unknown", unjoinable: "failing", expired: "failing", quarantined: "failing", pending: "open",
  claimed: "open", landed: "open", primary: "closed", unknown: "unknown" };
const MEANS = {
  primary: "Seen", foreign: "Landed", pending: "Waited", registry: "Claimed", joined: "Joined", filtered: "Filtered",
  unjoinable: "Given up", expired: "Expired", quarantine: "Set aside",
};
const RECORDS = new Set(["payload", "raw", "row"]);

// Records, and whatever else is JSON: columns of an adapter too.
function isBig([name, found]) {
  return RECORDS.has(name) || (typeof found === "object" && found !== null) || (typeof found === "string" && indent(found) !== found);
}

function value(name, found) {
  if (isBig([name, found])) return h("pre", { tabindex: "0" }, indent(typeof found === "object" ? JSON.stringify(found) : String(found)));
  const time = typeof found === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:/.test(found);
  return h("code", {}, time ? `${moment(found)} UTC` : String(found));
}

function step(found) {
  const { table, ...rest } = found;
  const order = Object.entries(rest).sort((one, other) => isBig(one) - isBig(other));
  return h("li", {}, h("h3", {}, MEANS[table] ?? table, h("span", { class: "quiet" }, ` in table ${table}`)),
    h("dl", { class: "pairs" }, order.map(([name, content]) => h("div", { class: isBig([name, content]) ? "big" : null }, h("dt", {}, words(name)), h("dd", {}, value(name, content))))));
}

export async function explain(state, event, close) {
  const place = byId("explained");
  place.hidden = false;
  byId("event").value = event;
  const head = (...more) => h("header", { class: "row" }, h("h2", {}, "Event ", h("code", {}, event)), ...more,
    h("button", { type: "button", class: "plain close", onclick: close }, "Close"));
  fill(place, head(), h("p", { class: "quiet" }, "Looking …"));
  try {
    const found = await pipeline(state.pipeline.name, `explain?event_id=${encodeURIComponent(event)}`);
    fill(place, head(pill(KIND[found.state] ?? "unknown", found.state)), found.remedy ? notice("warn", found.remedy) : null,
      h("ol", { class: "way" }, found.history.map(step)));
  } catch (error) {
    fill(place, head(), notice("bad", error.message, error.remedy));
  }
}
