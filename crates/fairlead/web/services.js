// All Services: how many are broken, which, and a filter; live.

import { h, put, say, since } from './dom.js';
import { VERDICTS, count, port } from './format.js';
import { list } from './list.js';
import { go, keep, link } from './router.js';
import { key, typeOf } from './rows.js';

const TYPES = ['ClusterIP', 'Headless', 'NodePort', 'LoadBalancer', 'ExternalName'];
const SHOWN = [
  ['', 'Services'],
  ['broken', 'broken'],
  ['warn', 'with a warning'],
  ['ok', 'fine'],
];

export function services({ query, rows, announce }) {
  const filter = {
    text: query.get('q') ?? '',
    namespace: query.get('ns') ?? '',
    type: query.get('type') ?? '',
    verdict: query.get('is') ?? '',
    first: query.has('first'),
    by: (query.get('by') ?? '').replace(/^-/, ''),
    down: (query.get('by') ?? '').startsWith('-'),
  };
  const table = list({
    caption: 'Services',
    heads: HEADS,
    key,
    draw,
    open: (row) => go(['services', row.namespace, row.name]),
    sort,
  });
  const gauges = new Map(SHOWN.map(([verdict, word]) => [verdict, gauge(verdict, word)]));
  const search = h('input', {
    type: 'search',
    value: filter.text,
    placeholder: 'name, address, port, …',
    'aria-label': 'Search Services',
    autocomplete: 'off',
    spellcheck: 'false',
    oninput: () => change({ text: search.value }),
  });
  const namespace = h('select', { 'aria-label': 'Namespace', onchange: () => change({ namespace: namespace.value }) });
  const type = h(
    'select',
    { 'aria-label': 'Type', onchange: () => change({ type: type.value }) },
    h('option', { value: '' }, 'every type'),
    TYPES.map((one) => h('option', { value: one }, one)),
  );
  type.value = filter.type;
  const first = h('input', { type: 'checkbox', id: 'first', onchange: () => change({ first: first.checked }) });
  first.checked = filter.first;
  const found = h('p', { class: 'found', role: 'status' });
  const empty = h('div', { class: 'empty', hidden: true });
  let broken = null;

  function gauge(verdict, word) {
    const number = h('b', {}, '–');
    const label = h('span', {}, word);
    const press = () => change({ verdict: filter.verdict === verdict ? '' : verdict });
    const button = h(
      'button',
      { type: 'button', class: `gauge is-${verdict || 'all'}`, onclick: press },
      number,
      label,
    );
    return { button, number, label };
  }

  function change(what) {
    Object.assign(filter, what);
    keep(['services'], {
      q: filter.text,
      ns: filter.namespace,
      type: filter.type,
      is: filter.verdict,
      first: filter.first ? '1' : '',
      by: `${filter.down ? '-' : ''}${filter.by}`,
    });
    table.top();
    draws();
  }

  /** Up, then down, then as it was. */
  function sort(by) {
    if (filter.by !== by) change({ by, down: false });
    else if (!filter.down) change({ down: true });
    else change({ by: '', down: false });
    announce(filter.by === '' ? 'sorted by name' : `sorted by ${by}, ${filter.down ? 'down' : 'up'}`);
  }

  function draws() {
    const counts = rows.counts();
    for (const [verdict, { button, number, label }] of gauges) {
      const many = verdict === '' ? rows.size : (counts[verdict] ?? 0);
      say(number, rows.ready ? count(many) : '–');
      if (verdict === '') say(label, many === 1 ? 'Service' : 'Services');
      button.setAttribute('aria-pressed', String(filter.verdict === verdict));
      button.classList.toggle('none', verdict !== '' && many === 0);
    }
    spaces();
    const chosen = rows.select(filter);
    table.show(chosen);
    table.mark(filter.by, filter.down);
    const all = chosen.length === rows.size;
    say(found, all || !rows.ready ? '' : `${count(chosen.length)} of ${count(rows.size)}`);
    nothing(chosen.length);
    if (broken !== null && broken !== counts.broken) announce(`${counts.broken} broken`);
    broken = rows.ready ? counts.broken : null;
  }

  function spaces() {
    const names = rows.namespaces();
    if (
      namespace.options.length === names.length + 1 &&
      names.every((name, at) => namespace.options[at + 1].value === name)
    )
      return;
    put(
      namespace,
      h('option', { value: '' }, 'every namespace'),
      names.map((name) => h('option', { value: name }, name)),
    );
    namespace.value = filter.namespace;
  }

  function nothing(many) {
    empty.hidden = many > 0 || !rows.ready;
    table.box.hidden = many === 0 && rows.ready;
    if (empty.hidden) return;
    if (rows.trouble) put(empty, h('p', {}, rows.trouble.message));
    else if (rows.size > 0)
      put(empty, h('p', {}, 'No Service is like that.'), h('button', { type: 'button', onclick: clear }, 'Show all'));
    else
      put(
        empty,
        h('p', {}, 'There is no Service yet.'),
        h('p', {}, 'This makes one in front of a Pod:'),
        h('pre', {}, START),
      );
  }

  function clear() {
    search.value = '';
    type.value = '';
    namespace.value = '';
    first.checked = false;
    change({ text: '', namespace: '', type: '', verdict: '', first: false });
    return true;
  }

  const node = h(
    'section',
    { class: 'services', 'aria-labelledby': 'title' },
    h('h1', { id: 'title', class: 'unseen' }, 'Services'),
    h(
      'div',
      { class: 'gauges', role: 'group', 'aria-label': 'By state' },
      [...gauges.values()].map((one) => one.button),
    ),
    h(
      'form',
      {
        class: 'filter',
        role: 'search',
        onsubmit: (event) => {
          event.preventDefault();
          table.box.focus();
        },
      },
      h('div', { class: 'field search' }, search, h('kbd', { 'aria-hidden': 'true' }, '/')),
      namespace,
      type,
      h('label', { class: 'check', for: 'first' }, first, 'broken first'),
      found,
    ),
    table.box,
    empty,
  );
  rows.addEventListener('change', draws);
  draws();
  const keys = {
    ...table.keys,
    '/': () => {
      search.focus();
      search.select();
    },
    b: () => {
      first.checked = !first.checked;
      change({ first: first.checked });
    },
    x: () => change({ verdict: filter.verdict === 'broken' ? '' : 'broken' }),
    Escape: () => {
      if (document.activeElement === search && search.value === '') return table.box.focus();
      return clear();
    },
  };
  return {
    node,
    title: 'Services',
    keys,
    stop: () => {
      rows.removeEventListener('change', draws);
      table.stop();
    },
  };
}

const HEADS = [
  ['', 'state', false],
  ['Service', 'name', true],
  ['Type', 'type', true],
  ['Addresses', 'addresses', true],
  ['Ports', 'ports', true],
  ['Endpoints', 'endpoints', true],
  ['Why', 'why', true],
  ['Age', 'age', true],
];

function draw(row) {
  const { sign, word } = VERDICTS[row.verdict] ?? VERDICTS.unknown;
  const addresses = [...row.addresses, ...row.external];
  const ports = row.ports.map(port).join(', ');
  return [
    h('td', { class: 'state' }, h('span', { class: `sign is-${row.verdict}`, role: 'img', 'aria-label': word }, sign)),
    h(
      'td',
      { class: 'name' },
      h(
        'a',
        { href: link(['services', row.namespace, row.name]) },
        h('span', { class: 'space' }, `${row.namespace}/`),
        row.name,
      ),
    ),
    h('td', { class: 'type' }, typeOf(row)),
    h(
      'td',
      { class: 'addresses', title: addresses.join('\n') },
      addresses[0] ?? '–',
      addresses.length > 1 && h('span', { class: 'more' }, ` +${addresses.length - 1}`),
    ),
    h('td', { class: 'ports', title: ports }, ports || '–'),
    h('td', { class: 'endpoints' }, endpoints(row)),
    h('td', { class: 'why', title: row.why }, row.why),
    h('td', { class: 'age' }, since(row.created)),
  ];
}

function endpoints(row) {
  if (row.type === 'ExternalName') return '–';
  const bar = h('span', { class: 'bar-of', 'aria-hidden': 'true' }, h('i', {}));
  bar.firstChild.style.width = `${row.total === 0 ? 0 : Math.round((row.ready / row.total) * 100)}%`;
  return [h('span', { class: 'ready' }, `${row.ready}/${row.total}`), bar];
}

const START = `fairlead run -d --name web-1 --labels app=web --port http=8080 -- python3 -m http.server 8080
kubectl expose pod web-1 --name web --port 80 --target-port http`;
