// JSON text with line ends and indentation, each value spelt as it was: a number of 64 bits does not survive JSON.parse.

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const CLOSES = { "{": "}", "[": "]" };

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

// Text that is no object and no list of JSON stays as it is.
export function indent(text) {
  if (!/^\s*[{[]/.test(text) || !isJson(text)) return text;
  const tokens = text.match(TOKENS);
  const lines = [""];
  let depth = 0;
  const next = () => lines.push("  ".repeat(depth));
  for (const [at, token] of tokens.entries()) {
    const opens = CLOSES[token];
    if (opens) depth += 1;
    if ((token === "}" || token === "]") && CLOSES[tokens[at - 1]] !== token) {
      depth -= 1;
      next();
    } else if (token === "}" || token === "]") depth -= 1;
    lines[lines.length - 1] += token === ":" ? ": " : token;
    if (token === "," || (opens && tokens[at + 1] !== opens)) next();
  }
  return lines.join("\n");
}
