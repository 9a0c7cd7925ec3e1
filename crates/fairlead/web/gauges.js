// The row of large numbers over the map of a Service: what flows now, and what has flowed.

import { h, say } from './dom.js';
import { bytes, count, rate } from './format.js';
import { add } from './rates.js';
import { spark } from './spark.js';

/** An empty row, and what shows a Service in it. */
export function gauges() {
  const dial = (label, unit) => {
    const number = h('b', {}, '–');
    const sub = h('small', {}, '');
    return {
      number,
      sub,
      node: h('div', { class: 'dial' }, h('span', {}, label), h('p', {}, number, unit && h('i', {}, ` ${unit}`)), sub),
    };
  };
  const [connections, into, out, ready] = [
    dial('Connections', '/s'),
    dial('To endpoints', '/s'),
    dial('From endpoints', '/s'),
    dial('Ready'),
  ];
  const past = spark('Connections over the last two minutes');
  const node = h(
    'div',
    { class: 'dials', role: 'group', 'aria-label': 'What flows now' },
    connections.node,
    h('div', { class: 'dial long' }, h('span', {}, 'Two minutes'), past.picture),
    into.node,
    out.node,
    ready.node,
  );
  return {
    node,
    show({ endpoints, row }, rates) {
      const { rates: now, past: before } = rates.of('all');
      const total = (what) => endpoints.reduce((sum, one) => add(sum, one[what]), null);
      node.hidden = endpoints.length === 0;
      say(connections.number, rate(now.connections));
      say(connections.sub, `${count(total('connections'))} in all`);
      say(into.number, bytes(now.bytesIn));
      say(into.sub, `${bytes(total('bytesIn'))} in all`);
      say(out.number, bytes(now.bytesOut));
      say(out.sub, `${bytes(total('bytesOut'))} in all`);
      say(ready.number, `${row.ready}/${row.total}`);
      say(ready.sub, row.ready === 0 ? 'nobody answers' : '');
      ready.node.classList.toggle('is-broken', row.ready === 0 && row.type !== 'ExternalName');
      past.draw(before, Math.max(0, ...before.map((one) => one ?? 0)));
    },
  };
}
