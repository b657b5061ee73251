// A quality report, in a frame that runs no scripts.

import { pipeline } from "./api.js";
import { byId, fill, h, notice } from "./dom.js";

export async function showReport(state, folder, close) {
  const place = byId("report");
  place.hidden = false;
  const name = encodeURIComponent(state.pipeline.name);
  const head = h("header", { class: "row" }, h("h2", {}, "Quality report ", h("code", {}, folder)),
    h("button", { type: "button", class: "plain close", onclick: close }, "Close"));
  try {
    const { pages } = await pipeline(state.pipeline.name, `reports?folder=${encodeURIComponent(folder)}`);
    if (!pages.length) throw new Error("This report has no pages: it may have been removed since");
    const frame = h("iframe", { title: "Quality report", src: address(name, folder, pages[0].path), onload: () => themed(frame) });
    const tabs = pages.map((page) => h("button", { type: "button", class: "plain", onclick: () => frame.setAttribute("src", address(name, folder, page.path)) }, page.title));
    fill(place, head, h("div", { class: "choice", role: "group", "aria-label": "Pages" }, tabs), frame);
  } catch (error) {
    fill(place, head, notice("bad", error.message, error.remedy ?? ""));
  }
  place.scrollIntoView({ block: "start" });
}

// A report runs no scripts: the theme that was chosen here is set from outside. On its own it follows the system.
function themed(frame) {
  const root = frame.contentDocument?.documentElement;
  if (root) root.dataset.theme = document.documentElement.dataset.theme;
}
addEventListener("themed", () => document.querySelectorAll("#report iframe").forEach(themed));

function address(name, folder, path) {
  return `report/${name}/${`${folder}/${path}`.split("/").map(encodeURIComponent).join("/")}`;
}
