// The table of a Service's endpoints. Numbers change in place, so that buttons and selections stay while it is live.

import { drain } from './actions.js';
import { h, put, row, say, table } from './dom.js';
import { bytes, count, rate, socket } from './format.js';
import { endpointId, stateOf } from './map.js';

/** Endpoints in the table until more are asked for. */
const PAGE = 100;

/** An empty table, and what shows endpoints in it; `after` hears what became of a change. */
export function endpointTable(session, namespace, rates, after) {
  const node = h('div', {});
  const numbers = new Map();
  let limit = PAGE;
  let shape = '';
  let last = null;

  function show(data) {
    last = data;
    const shown = data.endpoints.slice(0, limit);
    const next = JSON.stringify([
      data.row.type,
      data.endpoints.length,
      limit,
      shown.map((one) => [endpointId(one), one.node, one.target, one.zone, one.weight, stateOf(one).word]),
    ]);
    if (next !== shape) {
      shape = next;
      build(data, shown);
    }
    for (const one of shown) {
      const texts = [
        count(one.connections),
        rate(rates.of(endpointId(one)).rates.connections),
        bytes(one.bytesIn),
        bytes(one.bytesOut),
      ];
      numbers.get(endpointId(one))?.forEach((cell, at) => say(cell, texts[at]));
    }
  }

  function build(data, shown) {
    numbers.clear();
    if (shown.length === 0)
      return put(
        node,
        h('p', { class: 'quiet' }, data.row.type === 'ExternalName' ? 'It is only a name.' : 'It has none.'),
      );
    const heads = [
      '',
      'Address',
      'Target',
      'Node',
      'Connections',
      'Per second',
      'To it',
      'From it',
      ...(session.write ? [''] : []),
    ];
    const rest =
      data.endpoints.length > shown.length &&
      h('button', { type: 'button', class: 'small', onclick: more }, `Show more of ${count(data.endpoints.length)}`);
    return put(
      node,
      table(
        'Endpoints',
        heads,
        shown.map((one) => row(heads, cells(one))),
        'plain numbers',
      ),
      rest,
    );
  }

  function cells(one) {
    const { state, sign, word } = stateOf(one);
    const counted = Array.from({ length: 4 }, () => h('span', {}));
    numbers.set(endpointId(one), counted);
    return [
      h('span', { class: `sign is-${state}`, role: 'img', 'aria-label': word, title: word }, sign),
      h('span', { class: 'mono' }, socket(one.address, one.port)),
      [one.target || '–', word !== 'ready' && h('span', { class: `kind is-${state}` }, ` ${word}`)],
      [one.node || '–', one.zone && h('span', { class: 'by' }, ` ${one.zone}`)],
      ...counted,
      ...(session.write ? [drain(session, namespace, one, after)] : []),
    ];
  }

  function more() {
    limit += PAGE * 5;
    show(last);
  }

  return { node, show };
}
