// Rows of the output that are gone: accepted ids that are claimed and in no output, at two looks.

import { notice } from "./dom.js";
import { count } from "./format.js";

const FEW = 3; // dates that are named

// Those of a batch under way are there in a moment, so what one look shows proves nothing. `before`: dates and how many
// the look before missed.
export function gone(dates, before) {
  const missing = new Map(dates.filter((day) => day.missing > 0).map((day) => [day.date, day.missing]));
  const still = [...missing].filter(([date]) => before.has(date)).map(([date, ids]) => [date, Math.min(ids, before.get(date))]);
  return { missing, still, unsure: [...missing.keys()].some((date) => !before.has(date)) };
}

export function goneNotice(still) {
  if (!still.length) return null;
  const ids = still.reduce((whole, [, some]) => whole + some, 0);
  const named = still.slice(-FEW).map(([date]) => date).join(", ");
  const more = still.length > FEW ? ` and ${still.length - FEW} more` : "";
  return notice("bad", `${count(ids)} accepted ids of ${named}${more} are claimed and in no output: rows are gone, or a batch was killed`,
    "A batch is finished by the join's next task. If this stays, choose the date below, then Fill: it verifies the date and puts back what is missing.");
}
