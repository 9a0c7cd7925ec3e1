// Every Service as one row, kept up to date by the server's stream. Changes are told a few times a second at most.

import { Refusal, get, lines, longer, news, pause, tell } from './api.js';

const LIST = '/fairlead/v1/services';
/** Changes within this time are one change. */
const GATHER = 100;
/** How long to wait when a stream has ended well, as it does from time to time. */
const SHORT = 200;
/** What the server answers if it no longer knows what changed since. */
const EXPIRED = 410;
/** What can be searched for in rows. */
const texts = new WeakMap();

export class Rows extends EventTarget {
  #rows = new Map();
  #sorted = null;
  #timer = 0;
  #stopper = new AbortController();
  /** Whether the first answer is here. */
  ready = false;
  /** What went wrong with the list, if it did. */
  trouble = null;

  /** Keeps the rows up to date until it is stopped. */
  async start() {
    const { signal } = this.#stopper;
    let wait = 0;
    let since = null;
    while (!signal.aborted) {
      try {
        since ??= await this.#list(signal);
        // Pauses are short again only after a stream has said something.
        since = await this.#follow(since, signal, () => (wait = 0));
        await pause(SHORT, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refusal && (error.code === 401 || error.code === 404)) return this.#fail(error);
        // Whatever the server says to the stream, a new list is always right.
        if (!(error instanceof Refusal) || error.code !== 0) since = null;
        const expected = error.code === EXPIRED && wait === 0;
        wait = longer(wait);
        if (expected) continue;
        tell(error instanceof Refusal ? error : new Refusal(0, 'the connection ended'), wait);
        await pause(wait, signal);
      }
    }
  }

  stop() {
    this.#stopper.abort();
    clearTimeout(this.#timer);
  }

  #fail(error) {
    this.trouble = error;
    this.ready = true;
    this.dispatchEvent(new Event('change'));
  }

  async #list(signal) {
    const answer = await get(LIST, signal);
    this.#rows = new Map(answer.items.map((row) => [key(row), row]));
    this.#sorted = null;
    this.ready = true;
    this.dispatchEvent(new Event('change'));
    return answer.revision;
  }

  async #follow(from, signal, heard) {
    let since = from;
    news.dispatchEvent(new Event('fine'));
    await lines(`${LIST}?watch=1&since=${encodeURIComponent(from)}`, signal, (change) => {
      news.dispatchEvent(new Event('fine'));
      heard();
      if (change.type === 'ERROR') throw new Refusal(change.status.code, change.status.message);
      if (change.type === 'BEAT') since = change.revision;
      else this.#take(change);
    });
    return since;
  }

  #take(change) {
    if (change.type === 'PUT') {
      const known = this.#rows.has(key(change.row));
      this.#rows.set(key(change.row), change.row);
      if (!known) this.#sorted = null;
    } else if (change.type === 'DELETE') {
      this.#rows.delete(key(change));
      this.#sorted = null;
    }
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.dispatchEvent(new Event('change'));
    }, GATHER);
  }

  get size() {
    return this.#rows.size;
  }

  /** One row. */
  one(namespace, name) {
    return this.#rows.get(`${namespace}/${name}`);
  }

  /** How many there are of each verdict. */
  counts() {
    const counts = { ok: 0, warn: 0, broken: 0 };
    for (const row of this.#rows.values()) counts[row.verdict] = (counts[row.verdict] ?? 0) + 1;
    return counts;
  }

  /** The namespaces there are, in order. */
  namespaces() {
    return [...new Set([...this.#rows.values()].map((row) => row.namespace))].sort();
  }

  /** The rows that a filter lets through, by namespace and name or by a column; the broken ones first if that is wanted. */
  select({ text = '', namespace = '', type = '', verdict = '', first = false, by = '', down = false }) {
    this.#sorted ??= [...this.#rows.keys()].sort();
    const words = text
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== '');
    const fits = (row) =>
      (namespace === '' || row.namespace === namespace) &&
      (type === '' || typeOf(row) === type) &&
      (verdict === '' || row.verdict === verdict) &&
      words.every((word) => textOf(row).includes(word));
    const chosen = sorted(this.#sorted.map((name) => this.#rows.get(name)).filter(fits), by, down);
    if (!first) return chosen;
    return ['broken', 'warn', 'unknown', 'ok'].flatMap((wanted) => chosen.filter((row) => row.verdict === wanted));
  }
}

/** By what rows are sorted: smaller values come first. */
const ORDERS = {
  name: key,
  type: typeOf,
  addresses: (row) => padded(row.addresses[0] ?? row.external[0] ?? '~'),
  ports: (row) => row.ports[0]?.port ?? Infinity,
  endpoints: (row) => row.ready * 1e6 + row.total,
  why: (row) => row.why || '\uffff',
  age: (row) => -Date.parse(row.created),
};

/** Numbers in a text with as many digits each, so that 10.96.0.9 comes before 10.96.0.10. */
function padded(text) {
  return text.replace(/\d+/g, (digits) => digits.padStart(5, '0'));
}

/** Rows by a column; those that are alike there stay in their order. */
function sorted(rows, by, down) {
  const value = Object.hasOwn(ORDERS, by) ? ORDERS[by] : null;
  if (value === null) return rows;
  const sign = down ? -1 : 1;
  const valued = rows.map((row) => [value(row), row]);
  valued.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
  return valued.map(([, row]) => row);
}

/** What distinguishes a row. */
export function key(row) {
  return `${row.namespace}/${row.name}`;
}

/** The type as people call it. */
export function typeOf(row) {
  return row.headless ? 'Headless' : row.type;
}

/** All of a row that can be searched for in one text, made when somebody searches. */
function textOf(row) {
  let text = texts.get(row);
  if (text === undefined) {
    const ports = row.ports.flatMap((port) => [port.name, port.port, port.nodePort, port.targetPort, port.protocol]);
    const parts = [key(row), typeOf(row), ...row.addresses, ...row.external, ...ports, row.why];
    text = parts.filter(Boolean).join(' ').toLowerCase();
    texts.set(row, text);
  }
  return text;
}
