// The chain that a pipeline is part of, as a graph: who reads whose output, how far each is complete, what is unread.

import { fill, h, s } from "./dom.js";
import { brief, count, moment } from "./format.js";

const BOX = { width: 216, height: 78 };
const GAP = { x: 160, y: 22 };

const all = (reads) => Object.entries(reads);

// Left to right by how many pipelines lie before one. An upstream that is not among the parts may not be seen.
export function layout(parts) {
  const known = new Map(parts.map((part) => [part.pipeline, part]));
  for (const [, name] of parts.flatMap((part) => all(part.reads))) {
    if (!known.has(name)) known.set(name, { pipeline: name, reads: {}, unseen: true });
  }
  const depth = (name, below) => Math.max(0, ...all(known.get(name).reads).map(([, up]) => (below.includes(up) ? 0 : 1 + depth(up, [...below, up]))));
  const rows = [];
  const nodes = [...known.values()].map((part) => {
    const column = depth(part.pipeline, [part.pipeline]);
    rows[column] = (rows[column] ?? -1) + 1;
    return { name: part.pipeline, part, x: column * (BOX.width + GAP.x), y: rows[column] * (BOX.height + GAP.y) };
  });
  const edges = parts.flatMap((part) => all(part.reads).map(([stream, from], at, some) => (
    { from, to: part.pipeline, stream, unread: part.unread?.[stream], at: (at + 1) / (some.length + 1) })));
  const end = (side, gap, size) => Math.max(0, ...nodes.map((node) => node[side])) + size;
  return { nodes, edges, width: end("x", GAP.x, BOX.width), height: end("y", GAP.y, BOX.height) };
}

function stands(part) {
  if (part.unseen) return ["its figures are not yours to see", ""];
  if (part.problem) return ["cannot be read", part.problem];
  return [`joined ${brief(part.joined)}`, part.watermark ? `complete to ${moment(part.watermark).slice(0, 16)}` : "complete to: not known"];
}

// What a screen reader says of a box, and a pointer that rests on it.
export function sentence(part) {
  const reads = all(part.reads).map(([stream, from]) => `reads ${stream} from ${from}, ${count(part.unread?.[stream])} unread`);
  return [`${part.pipeline}: ${stands(part).filter(Boolean).join("; ")}`, part.why, ...reads].filter(Boolean).join("; ");
}

function box(node, here) {
  const { part, x, y } = node;
  const [first, second] = stands(part);
  const text = (dy, name, words) => s("text", { x: x + 12, y: y + dy, class: name }, words);
  const short = second.length > 31 ? `${second.slice(0, 30)}…` : second;
  const drawn = [
    s("title", {}, sentence(part)),
    s("rect", { x: x + 1, y: y + 1, width: BOX.width - 2, height: BOX.height - 2, rx: 9, class: part.problem ? "bad" : part.unseen ? "unseen" : "" }),
    text(25, "name", node.name), text(46, part.problem ? "bad" : "", first), text(64, "", short),
  ];
  if (part.unseen) return s("g", {}, ...drawn);
  const href = `#${new URLSearchParams({ pipeline: node.name })}`;
  return s("a", { href, "aria-label": sentence(part), "aria-current": node.name === here ? "page" : null }, ...drawn);
}

function arrow(edge, byName) {
  const [from, to] = [byName.get(edge.from), byName.get(edge.to)];
  const [x1, y1, x2, y2] = [from.x + BOX.width, from.y + BOX.height / 2, to.x - 7, to.y + BOX.height * edge.at];
  const bend = (x2 - x1) / 2;
  return s("g", { "aria-hidden": "true" },
    s("path", { d: `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`, class: "arrow" }),
    s("path", { d: `M${x2},${y2 - 5} l7,5 l-7,5 z`, class: "tip" }),
    s("text", { x: x2 - 8, y: y2 - 7, class: "label" }, `${edge.stream}: ${brief(edge.unread)} unread`));
}

// Nothing where the pipeline stands alone.
export function showChain(parts, here) {
  if (parts.length < 2 && !parts.some((part) => all(part.reads).length)) return fill("chain");
  const { nodes, edges, width, height } = layout(parts);
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const drawing = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Pipelines of the chain" },
    ...edges.map((edge) => arrow(edge, byName)), ...nodes.map((node) => box(node, here)));
  return fill("chain", h("h3", {}, "Chain"), h("div", { class: "scroll graph", tabindex: "0", role: "region", "aria-label": "Chain" }, drawing));
}
