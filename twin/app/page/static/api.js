// Questions to the server. What goes wrong becomes a Refusal with sentences for a person.

export class Refusal extends Error {
  constructor(problems) {
    super(problems.map(({ reason }) => reason).join("; "));
    this.problems = problems;
  }
}

const aboutAll = (reason) => new Refusal([{ field: "", reason }]);

const refusalOf = async (response) => {
  const said = await response.json().catch(() => ({}));
  if (Array.isArray(said.problems)) return new Refusal(said.problems);
  return aboutAll(said.problem ?? `The server failed to answer (${response.status}).`);
};

const answered = async (path, request) => {
  let response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw aboutAll("The server does not answer. Is it still running?");
  }
  if (!response.ok) throw await refusalOf(response);
  return response.json().catch(() => { throw aboutAll("The server's answer broke off."); });
};

export const get = (path) => answered(path, {});

export const post = (path, question, signal) => answered(path, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(question),
  signal,
});

export const upload = (path, file) => answered(path, { method: "POST", body: file });

/**
 * One question at a time, and after it the latest that came meanwhile. Every answer that arrives is shown:
 * a slider in motion would starve if each move aborted the question before it.
 */
export const latestOf = (path, { show, refuse }) => {
  let running = null;
  let waiting = null;
  let idle = null;

  const next = async () => {
    const { question, context } = waiting;
    waiting = null;
    const mine = running = new AbortController();
    try {
      const answer = await post(path, question, mine.signal);
      if (!mine.signal.aborted) await show(answer, context);
    } catch (error) {
      if (!(error instanceof Refusal)) {
        if (error.name !== "AbortError") throw error;
      } else if (!mine.signal.aborted && !waiting) refuse(error);
    } finally {
      if (running === mine) running = null;
      if (!waiting) [waiting, idle] = [idle, null];
      if (waiting && !running) next();
    }
  };

  return {
    ask(question, context) {
      [waiting, idle] = [{ question, context }, null];
      if (!running) next();
    },
    /** When nothing else is asked; never in the place of another question. */
    askWhenIdle(question, context) {
      idle = { question, context };
      if (running || waiting) return;
      [waiting, idle] = [idle, null];
      next();
    },
    /** What was asked so far no longer matters. */
    forget() {
      [waiting, idle] = [null, null];
      running?.abort();
      running = null;
    },
  };
};
