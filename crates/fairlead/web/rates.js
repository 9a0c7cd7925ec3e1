// Counters that only grow, as rates and a short past of them. Bounded: so many samples of each, and nobody who is gone.

/** Samples kept of each: two minutes at one every two seconds. */
const KEPT = 60;

export class Rates {
  #known = new Map();

  /**
   * Takes the counters of somebody at a time in milliseconds. A counter that fell began again; one that is null is not
   * counted.
   */
  feed(name, at, counters) {
    const before = this.#known.get(name);
    const rates = {};
    for (const [what, now] of Object.entries(counters)) rates[what] = rise(before, what, now, at);
    const past = before?.past ?? [];
    if (before) past.push(rates.connections);
    if (past.length > KEPT) past.shift();
    this.#known.set(name, { at, counters, rates, past });
  }

  /** What is known of somebody: rates, and the past of connections. */
  of(name) {
    const known = this.#known.get(name);
    return { rates: known?.rates ?? {}, past: known?.past ?? [] };
  }

  /** The highest rate of connections in sight, so that small pictures can be compared. */
  highest(names) {
    return Math.max(0, ...names.flatMap((name) => this.of(name).past.map((rate) => rate ?? 0)));
  }

  /** Forgets everybody else. */
  only(names) {
    const wanted = new Set(names);
    for (const name of this.#known.keys()) if (!wanted.has(name)) this.#known.delete(name);
  }
}

/** By how much a counter rises in a second; null: nobody counts it, undefined: that cannot be told yet. */
function rise(before, what, now, at) {
  if (now === null || now === undefined) return null;
  const then = before?.counters[what] ?? null;
  if (then === null || now < then || at <= before.at) return undefined;
  return ((now - then) * 1000) / (at - before.at);
}

/** The sum of two counters; what is not counted adds nothing, unless nothing is counted. */
export function add(a, b) {
  if (a === null || a === undefined) return b ?? null;
  return a + (b ?? 0);
}
