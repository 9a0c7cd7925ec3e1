// The map of one Service: who asks, at which addresses, and which endpoints answer, with what flows between them.

import { h, put, s, say } from './dom.js';
import { bytes, rate, socket } from './format.js';
import { spark } from './spark.js';

/** Endpoints on the map; the table below it has all of them. */
const SHOWN = 8;
/** What kinds of frontend there are, and who comes that way. */
const KINDS = {
  clusterIP: ['cluster IP', 'inside'],
  nodePort: ['node port', 'outside'],
  externalIP: ['external IP', 'outside'],
  loadBalancerIP: ['load balancer', 'outside'],
};
const CLIENTS = { inside: ['Pods and Nodes', 'in the cluster'], outside: ['Everybody else', 'outside'] };

/** An empty map, and what shows a Service on it. */
export function map(rates) {
  const wires = s('svg', { class: 'wires', 'aria-hidden': 'true' });
  const columns = ['clients', 'fronts', 'backs'].map((name) => h('ul', { class: name }));
  const node = h(
    'div',
    { class: 'map', role: 'group', 'aria-label': 'Map: clients, addresses, endpoints' },
    wires,
    columns,
  );
  const cards = new Map();
  let shape = '';
  let edges = [];

  function show(detail) {
    const scene = sceneOf(detail);
    const next = JSON.stringify([
      scene.clients,
      scene.fronts.map((one) => one.id),
      scene.backs.map((one) => [one.id, one.state]),
      scene.more,
      scene.end,
    ]);
    if (next !== shape) {
      shape = next;
      build(scene);
    }
    refresh(scene);
    wire();
  }

  function build(scene) {
    cards.clear();
    put(
      columns[0],
      scene.clients.map((who) => card(`client ${who}`, CLIENTS[who][0], CLIENTS[who][1], 'client')),
    );
    put(
      columns[1],
      scene.fronts.map((one) => card(one.id, one.title, one.note, 'front')),
    );
    put(
      columns[2],
      scene.backs.map((one) => card(one.id, one.title, one.note, `back is-${one.state}`, one)),
      scene.more > 0 && h('li', { class: 'rest' }, `and ${scene.more} more, in the table below`),
      scene.end && card('end', scene.end[0], scene.end[1], scene.end[2]),
    );
    edges = scene.edges;
  }

  function card(id, title, note, kind, back) {
    const flow = h('span', { class: 'flow' });
    const picture = back && spark(`Connections to ${title} over the last two minutes`);
    const node = h(
      'li',
      { class: `card ${kind}` },
      h(
        'b',
        {},
        back && h('span', { class: `sign is-${back.state}`, role: 'img', 'aria-label': back.word }, back.sign),
        title,
      ),
      h('small', {}, note),
      !['client', 'none', 'beyond'].includes(kind) && h('span', { class: 'line' }, flow),
      picture?.picture,
    );
    cards.set(id, { node, flow, picture });
    return node;
  }

  function refresh(scene) {
    const highest = rates.highest(scene.backs.map((one) => one.id));
    for (const one of [...scene.fronts, ...scene.backs]) {
      const known = rates.of(one.id);
      const at = cards.get(one.id);
      say(at.flow, flowOf(known.rates));
      at.picture?.draw(known.past, highest);
    }
  }

  /** Draws the lines, as thick as what flows. */
  function wire() {
    const frame = node.getBoundingClientRect();
    if (frame.width === 0) return;
    wires.setAttribute('viewBox', `0 0 ${frame.width} ${frame.height}`);
    put(
      wires,
      edges.map(([from, to]) => {
        const [a, b] = [cards.get(from)?.node, cards.get(to)?.node].map((one) => one?.getBoundingClientRect());
        if (!a || !b) return null;
        const [x1, y1, x2, y2] = [a.right - frame.left, middle(a, frame), b.left - frame.left, middle(b, frame)];
        const bend = (x2 - x1) / 2;
        const flows = flowing(from, to);
        const kind = cards.get(to).node.matches('.none') ? 'wire dead' : flows > 0 ? 'wire moving' : 'wire';
        const path = s('path', { d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, class: kind });
        path.style.strokeWidth = `${Math.min(6, 1.5 + Math.log10(1 + flows))}px`;
        return path;
      }),
    );
  }

  /** What one line carries cannot be known, but no more than goes in, and no more than comes out. */
  function flowing(from, to) {
    const [a, b] = [from, to].map((id) => rates.of(id).rates.connections);
    return Math.min(a ?? Infinity, b ?? (a === undefined || a === null ? 0 : Infinity));
  }

  const watcher = new ResizeObserver(wire);
  watcher.observe(node);
  return { node, show, stop: () => watcher.disconnect() };
}

function middle(box, frame) {
  return box.top - frame.top + box.height / 2;
}

function flowOf({ connections, bytes: size }) {
  if (connections === null && size === null) return 'not counted';
  const known = (number) => number !== null && number !== undefined;
  return (
    [known(connections) && `${rate(connections)} conn/s`, known(size) && `${bytes(size)}/s`]
      .filter(Boolean)
      .join('  ') || ' '
  );
}

/** What a Service looks like on a map. */
function sceneOf({ row, endpoints, frontends, object }) {
  const ranked = [...endpoints].sort((a, b) => Number(a.ready) - Number(b.ready) || b.connections - a.connections);
  const shown = endpoints.length > SHOWN ? ranked.slice(0, SHOWN) : endpoints;
  const backs = shown.map((one) => ({
    id: endpointId(one),
    title: socket(one.address, one.port),
    note: noteOf(one),
    ...stateOf(one),
  }));
  const fronts = row.headless || row.type === 'ExternalName' ? [nameOf(row, object)] : frontends.map(frontOf);
  const clients = [...new Set(fronts.map((one) => one.who))].sort();
  const end = endOf(row, backs);
  const ends = end ? ['end'] : backs.filter((back) => back.answers).map((back) => back.id);
  const edges = [
    ...fronts.map((one) => [`client ${one.who}`, one.id]),
    ...fronts.flatMap((one) => ends.map((id) => [one.id, id])),
  ];
  return { clients, fronts, backs, edges, end, more: endpoints.length - shown.length };
}

/** Where connections end if no endpoint answers: title, note and kind of the card. */
function endOf(row, backs) {
  if (row.type === 'ExternalName') return ['Outside the cluster', 'wherever that name leads', 'beyond'];
  return backs.some((back) => back.answers)
    ? null
    : ['Nobody', row.headless ? 'the name has no address' : 'connections are refused', 'none'];
}

function frontOf(one) {
  const [word, who] = KINDS[one.kind] ?? [one.kind, 'inside'];
  return {
    id: frontendId(one),
    title: socket(one.address, one.port),
    note: `${word}, ${one.protocol}`,
    who,
  };
}

/** A Service without an address of its own is a name. */
function nameOf(row, object) {
  const external = row.type === 'ExternalName';
  const note = external ? `the DNS says ${object.spec.externalName}` : 'the DNS says the addresses of the endpoints';
  return { id: 'name', title: `${row.name}.${row.namespace}`, note, who: 'inside' };
}

function noteOf(one) {
  return [one.target, one.node && `on ${one.node}`, one.zone].filter(Boolean).join(' · ') || 'no target';
}

/** The state of an endpoint: its class, its sign, its word, and whether connections go there. */
export function stateOf(one) {
  if (one.weight === 0) return { state: 'warn', sign: '–', word: 'drained', answers: false };
  if (one.terminating)
    return {
      state: 'warn',
      sign: '↓',
      word: one.serving ? 'terminating, still serving' : 'terminating',
      answers: one.serving,
    };
  if (one.ready) return { state: 'ok', sign: '✓', word: 'ready', answers: true };
  return { state: 'broken', sign: '✗', word: 'not ready', answers: false };
}

/** What distinguishes an endpoint among those of a Service. */
export function endpointId(one) {
  return `back ${one.address} ${one.port} ${one.portName ?? ''}`;
}

/** What distinguishes a frontend. */
export function frontendId(one) {
  return `front ${one.kind} ${one.address} ${one.port} ${one.protocol}`;
}
