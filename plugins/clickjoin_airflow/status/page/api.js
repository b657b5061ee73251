// Asking the page's own routes, which only read, and Airflow's public API, which acts as the user who is logged in.

export class Problem extends Error {
  constructor(message, { remedy = "", status = 0 } = {}) {
    super(message);
    this.remedy = remedy;
    this.status = status;
  }
}

async function ask(url, options) {
  let answer;
  try {
    answer = await fetch(url, { credentials: "same-origin", ...options });
  } catch {
    throw new Problem("Airflow does not answer", { remedy: "This page tries again by itself" });
  }
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  throw await refused(answer);
}

async function refused(answer) {
  const { status } = answer;
  if (status === 401) {
    return new Problem("You are not logged in any more", { status, remedy: "Log in to Airflow, then load this page again" });
  }
  const body = await answer.json().catch(() => ({}));
  if (body.problem) return new Problem(body.problem.message, { status, remedy: body.problem.remedy });
  if (status === 403) return new Problem("Your role in Airflow does not allow this", { status });
  return new Problem(detail(body.detail) ?? `Airflow answered with ${status}`, { status });
}

function detail(found) {
  if (Array.isArray(found)) return found.map((one) => one.msg).join("; ");
  return typeof found === "string" ? found : found?.reason;
}

// What is asked for again before it was answered waits for that answer: a disk that hangs gets one question at a time.
const asked = new Map();

export function get(path) {
  if (!asked.has(path)) asked.set(path, ask(`api/${path}`).finally(() => asked.delete(path)));
  return asked.get(path);
}

export const pipeline = (name, path) => get(`pipelines/${encodeURIComponent(name)}/${path}`);

export function airflow(method, path, body) {
  const headers = { "Content-Type": "application/json", Accept: "application/json" };
  return ask(`../api/v2/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}
