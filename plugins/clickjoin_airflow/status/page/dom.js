// Elements without markup in strings: what comes from tables is only ever text.

function set(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name === "class") node.className = value;
  else node.setAttribute(name, value === true ? "" : value);
}

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) set(node, name, value);
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function s(tag, props, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

export function fill(id, ...children) {
  const node = typeof id === "string" ? byId(id) : id;
  node.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function notice(kind, message, remedy = "") {
  return h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" },
    h("strong", {}, message), remedy ? h("p", {}, remedy) : null);
}

export function pill(kind, text) {
  return h("span", { class: `pill ${kind}` }, text);
}

// columns: [title, row => cell, "number"?]
export function table(columns, rows, { caption = "", empty = "Nothing yet." } = {}) {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  const head = columns.map(([title, , kind]) => h("th", { scope: "col", class: kind }, title));
  const body = rows.map((row) => h("tr", {}, columns.map(([, cell, kind]) => h("td", { class: kind }, cell(row)))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "table" },
    h("table", {}, caption ? h("caption", {}, caption) : null, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

// The page often lies in a frame of Airflow's that may not leave it: Airflow's own document follows the link.
export function outside(href, text) {
  const url = new URL(href, document.baseURI).href;
  function follow(event) {
    if (window.top === window) return;
    event.preventDefault();
    const link = window.top.document.createElement("a");
    link.href = url;
    window.top.document.body.append(link);
    link.click();
    link.remove();
  }
  return h("a", { href: url, onclick: follow }, text);
}
