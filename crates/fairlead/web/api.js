// The one door to the server: questions, changes, questions asked again and again, and streams of lines.

/** Tells the rest of the page: 'signed-out' when the session is over, 'trouble' and 'fine' as answers fail and come. */
export const news = new EventTarget();

/** Where the proof is kept: what signing in answered beside the cookie. Pages of other ports get the cookie, but not this. */
const PROOF = 'proof';
/** It, where nothing can be kept. */
let proof = null;

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 30000;
/** A stream that says nothing for this long is dead: the server says something every 10 s. */
const SILENCE = 25000;
/** An answer that takes longer does not come. */
const LONGEST_ANSWER = 30000;
/** No line of a stream is longer. */
const LONGEST_LINE = 4 << 20;

/** What the server answered instead of what was asked for: its code, and its sentence. */
export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Keeps the proof that requests come from a page that signed in; null forgets it. */
export function prove(text) {
  proof = text;
  try {
    if (text === null) localStorage.removeItem(PROOF);
    else localStorage.setItem(PROOF, text);
  } catch {
    /* It holds until the page is closed. */
  }
}

/** What proves it now: another tab may have signed in since. */
function proved() {
  try {
    return localStorage.getItem(PROOF) ?? proof;
  } catch {
    return proof;
  }
}

/** The path with a query; what is empty is left out. */
export function path(base, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  return given.length === 0 ? base : `${base}?${new URLSearchParams(given)}`;
}

/** Asks for JSON. */
export async function get(where, signal) {
  const limit = AbortSignal.timeout(LONGEST_ANSWER);
  const both = signal ? AbortSignal.any([signal, limit]) : limit;
  const response = await ask(where, { signal: both, headers: { Accept: 'application/json' } });
  try {
    return await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal(0, 'the answer was cut off');
  }
}

/** Changes something. */
export async function change(method, where, body, type = 'application/json') {
  const headers = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = type;
  return ask(where, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
}

/** Asks, and turns every answer that is no success into a Refusal. */
async function ask(where, options) {
  const shown = proved();
  const headers = { ...options.headers, ...(shown === null ? {} : { 'X-Fairlead-Proof': shown }) };
  let response;
  try {
    response = await fetch(where, { credentials: 'same-origin', cache: 'no-store', ...options, headers });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal(0, 'the server does not answer');
  }
  if (response.ok) return response;
  const refusal = new Refusal(response.status, await sentence(response));
  if (response.status === 401) news.dispatchEvent(new Event('signed-out'));
  throw refusal;
}

async function sentence(response) {
  try {
    return (await response.json()).message || `the server says ${response.status}`;
  } catch {
    return `the server says ${response.status} ${response.statusText}`.trim();
  }
}

/**
 * Asks every so often, but not while nobody looks, and with longer and longer pauses while it fails. `where` is a path,
 * or what asks until a signal says otherwise. `data` gets answers, `trouble` gets what went wrong. What is not there may
 * come (again), so it is asked for, if rarely. Returns what stops it, and what asks at once.
 */
export function poll(where, every, data, trouble) {
  const question = typeof where === 'function' ? where : (signal) => get(where, signal);
  const stopper = new AbortController();
  let wait = FIRST_WAIT;
  let timer;
  /** Counts the questions: only the newest one's answer counts, and only it is followed by another. */
  let turn = 0;
  const again = (delay) => {
    timer = setTimeout(once, delay);
  };
  async function once() {
    turn += 1;
    const mine = turn;
    const late = () => stopper.signal.aborted || mine !== turn;
    if (document.hidden) return again(every);
    let answer;
    try {
      answer = await question(stopper.signal);
    } catch (error) {
      return late() ? undefined : failed(error);
    }
    if (late()) return undefined;
    wait = FIRST_WAIT;
    news.dispatchEvent(new Event('fine'));
    again(every);
    return data(answer);
  }
  function failed(error) {
    trouble(error, wait);
    if (error.code === 0) tell(error, wait);
    if (error.code === 401) return;
    again(error.code === 404 ? LONGEST_WAIT : wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
  once();
  const now = () => {
    clearTimeout(timer);
    once();
  };
  return {
    stop: () => {
      stopper.abort();
      clearTimeout(timer);
    },
    now,
  };
}

/** Says that something fails, and when it will be tried again. */
export function tell(error, wait) {
  news.dispatchEvent(new CustomEvent('trouble', { detail: { message: error.message, wait } }));
}

/** Hands every line of a stream to `each` as JSON, until it ends, fails or falls silent. */
export async function lines(where, signal, each) {
  const quiet = new AbortController();
  let timer;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), SILENCE);
  };
  try {
    heard();
    const response = await ask(where, { signal: AbortSignal.any([signal, quiet.signal]) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      const found = (rest + value).split('\n');
      rest = found.pop();
      if (rest.length > LONGEST_LINE) throw new Refusal(0, 'the stream makes no sense');
      found.filter((line) => line.trim() !== '').forEach((line) => each(JSON.parse(line)));
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Waits, unless it is stopped. */
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

/** The next pause after this one. */
export function longer(wait) {
  return wait === 0 ? FIRST_WAIT : Math.min(wait * 2, LONGEST_WAIT);
}
