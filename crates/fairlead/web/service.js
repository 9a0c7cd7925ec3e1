// One Service: why it does not work if it does not, its map with what flows, its endpoints, and its past.

import { get, path, poll } from './api.js';
import { remove } from './actions.js';
import { copier, h, part, put, row as line, say, since, table } from './dom.js';
import { endpointTable } from './endpoints.js';
import { gauges } from './gauges.js';
import { VERDICTS, port } from './format.js';
import { cause, steps, verdict } from './findings.js';
import { endpointId, frontendId, map } from './map.js';
import { Rates, add } from './rates.js';
import { go, link } from './router.js';
import { typeOf } from './rows.js';
import { events, timeline } from './timeline.js';
import { yaml } from './yaml.js';

const EVERY = 2000;
const PAST_EVERY = 5000;

export function service({ parts: [, namespace, name], session, announce }) {
  const rates = new Rates();
  const picture = map(rates);
  const dials = gauges();
  const panels = layout(namespace, name, picture.node, dials.node);
  let last = null;
  let verdictWas = null;

  const asked = (error) => {
    announce(error ? error.message : 'Done.');
    detail.now();
  };
  const backs = endpointTable(session, namespace, rates, asked);
  panels.endpoints.append(backs.node);
  const heading = part(panels.heading, (data) => head(data, session, asked));
  const why = part(panels.why, (report) => report && [verdict(report), cause(report)]);
  const chain = part(panels.steps, (report) => report && steps(report));
  const frontends = part(panels.ports, ports);
  const happened = part(panels.events, events);
  const object = part(panels.yaml, source);
  const past = part(panels.past, (items) => timeline(items));

  function show(data) {
    last = data;
    feed(rates, data);
    heading(data.row);
    why(data.findings);
    chain(data.findings);
    picture.show(data);
    dials.show(data, rates);
    frontends(data.row.ports);
    backs.show(data);
    happened(data.events ?? []);
    object(data.object);
    panels.note.hidden = true;
    tellOf(data.row);
  }

  function tellOf(row) {
    if (verdictWas && verdictWas !== row.verdict)
      announce(`${row.namespace}/${row.name} is ${VERDICTS[row.verdict]?.word ?? row.verdict} now`);
    verdictWas = row.verdict;
  }

  function trouble(error) {
    panels.note.hidden = false;
    say(panels.note, error.code === 404 ? gone(last, error) : `${error.message}; shown is what was last known`);
    panels.body.classList.add('stale');
    panels.body.hidden = last === null;
  }

  const base = `/fairlead/v1/services/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const detail = poll(
    base,
    EVERY,
    (data) => {
      panels.body.classList.remove('stale');
      panels.body.hidden = false;
      show(data);
    },
    trouble,
  );
  const history = poll(
    path('/fairlead/v1/history', { subject: `svc/${namespace}/${name}`, limit: 50 }),
    PAST_EVERY,
    (data) => past(data.items),
    (error) => {
      if (!panels.past.hasChildNodes()) put(panels.past, h('p', { class: 'quiet' }, error.message));
    },
  );
  closer(panels, namespace, name);
  const keys = { Escape: () => go(['services']), p: () => go(['packet'], { to: `svc/${namespace}/${name}` }) };
  return {
    node: panels.node,
    title: `${namespace}/${name}`,
    keys,
    stop: () => {
      detail.stop();
      history.stop();
      picture.stop();
    },
  };
}

function gone(last, error) {
  return last ? 'This Service was deleted. Below is what was last known of it.' : error.message;
}

/** The places of everything. */
function layout(namespace, name, picture, dials) {
  const panels = Object.fromEntries(
    ['heading', 'why', 'steps', 'ports', 'endpoints', 'events', 'yaml', 'past'].map((id) => [
      id,
      h('div', { class: `in-${id}` }),
    ]),
  );
  const section = (title, ...children) => h('section', { class: 'panel' }, h('h2', {}, title), children);
  panels.note = h('p', { class: 'note', role: 'status', hidden: true });
  panels.closer = h('form', { class: 'closer' });
  panels.body = h(
    'div',
    { class: 'body', hidden: true },
    panels.why,
    dials,
    picture,
    section('Endpoints', panels.endpoints),
    h(
      'div',
      { class: 'two' },
      h('div', {}, section('The chain, step by step', panels.steps, panels.closer), section('Ports', panels.ports)),
      h('div', {}, section('What changed', panels.past), section('Events', panels.events)),
    ),
    h('details', { class: 'panel yaml' }, h('summary', {}, h('h2', {}, 'The object')), panels.yaml),
  );
  panels.node = h(
    'section',
    { class: 'service', 'aria-labelledby': 'title' },
    h(
      'p',
      { class: 'crumbs' },
      h('a', { href: '#/services' }, 'Services'),
      ' / ',
      h('a', { href: link(['services'], { ns: namespace }) }, namespace),
    ),
    h('h1', { id: 'title' }, name),
    panels.heading,
    panels.note,
    panels.body,
  );
  return panels;
}

function head(row, session, after) {
  const addresses = [...row.addresses, ...row.external];
  return [
    h(
      'p',
      { class: 'facts' },
      h('span', {}, typeOf(row)),
      addresses.map((one) => h('span', { class: 'mono' }, one)),
      row.ports.length > 0 && h('span', { class: 'mono' }, row.ports.map(port).join(', ')),
      h('span', {}, since(row.created), ' old'),
      h('a', { href: link(['packet'], { to: `svc/${row.namespace}/${row.name}` }) }, 'Follow a packet'),
      h('a', { href: link(['dns'], { name: `${row.name}.${row.namespace}.svc.${session.domain}` }) }, 'Ask the DNS'),
      remove(session, row.namespace, row.name, (error) => (error ? after(error) : go(['services']))),
    ),
  ];
}

/** Gives the rates what the counters say. */
function feed(rates, { endpoints, frontends }) {
  const now = performance.now();
  const names = ['all'];
  const sum = { connections: null, bytesIn: null, bytesOut: null };
  for (const [id, list] of [
    [endpointId, endpoints],
    [frontendId, frontends],
  ]) {
    for (const one of list) {
      names.push(id(one));
      rates.feed(id(one), now, {
        connections: one.connections,
        bytes: add(one.bytesIn, one.bytesOut),
      });
    }
  }
  for (const one of endpoints) for (const what of Object.keys(sum)) sum[what] = add(sum[what], one[what]);
  rates.feed('all', now, sum);
  rates.only(names);
}

function ports(list) {
  if (list.length === 0) return h('p', { class: 'quiet' }, 'It has no ports.');
  const heads = ['Name', 'Port', 'Target', 'Node port', 'Protocol'];
  return table(
    'Ports',
    heads,
    list.map((one) =>
      line(heads, [
        one.name || '–',
        String(one.port),
        String(one.targetPort ?? '–'),
        String(one.nodePort || '–'),
        one.protocol,
      ]),
    ),
  );
}

function source(object) {
  const text = yaml(object);
  return [copier(text, 'Copy the YAML'), h('pre', { tabindex: '0', 'aria-label': 'YAML of the Service' }, text)];
}

/** The form that asks again: as seen by somebody, with a real packet. */
function closer(panels, namespace, name) {
  const from = h('input', {
    type: 'text',
    placeholder: 'pod/NAME, node or outside',
    'aria-label': 'As seen from',
    spellcheck: 'false',
    autocomplete: 'off',
  });
  const live = h('input', { type: 'checkbox', id: 'live' });
  const result = h('div', { class: 'closer-result', role: 'status' });
  put(
    panels.closer,
    h('label', {}, 'Look closer, from ', from),
    h('label', { class: 'check', for: 'live' }, live, 'with a real packet'),
    h('button', { type: 'submit', class: 'small' }, 'Look'),
  );
  panels.closer.after(result);
  panels.closer.addEventListener('submit', async (event) => {
    event.preventDefault();
    put(result, h('p', { class: 'quiet' }, 'Looking…'));
    try {
      const report = await get(
        path('/fairlead/v1/explain', { namespace, name, from: from.value.trim(), live: live.checked ? 1 : 0 }),
      );
      put(result, verdict(report), steps(report));
    } catch (error) {
      put(result, h('p', { class: 'note' }, error.message));
    }
  });
}
