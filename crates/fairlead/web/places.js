// Two tables: load balancers, and Nodes. How far a proxy is is known of the Node that answers, and of no other.

import { poll } from './api.js';
import { h, part, row, since, table } from './dom.js';
import { count } from './format.js';
import { link } from './router.js';

const EVERY = 3000;

export function balancers() {
  return page('Load balancers', '/fairlead/v1/balancers', (items) => {
    if (items.length === 0)
      return empty('No Service is of type LoadBalancer.', 'kubectl expose pod web-1 --type LoadBalancer --port 80');
    const heads = ['', 'Service', 'Addresses', 'Ports', 'Path', 'Announced by', 'Healthy', 'State'];
    return table(
      'Load balancers',
      heads,
      items.map((one) =>
        row(heads, [
          sign(one.state === 'serving' ? 'ok' : one.healthy > 0 ? 'warn' : 'broken'),
          h(
            'a',
            { href: link(['services', one.namespace, one.name]) },
            h('span', { class: 'space' }, `${one.namespace}/`),
            one.name,
          ),
          mono(one.addresses, 'pending'),
          one.ports.join(', '),
          one.path,
          one.announcers.join(', ') || '–',
          `${one.healthy}/${one.backends}`,
          h('span', { class: 'prose' }, one.state),
        ]),
      ),
    );
  });
}

export function nodes() {
  return page('Nodes', '/fairlead/v1/nodes', (items) => {
    if (items.length === 0) return empty('No Node has registered.', 'fairlead node --help');
    const heads = ['', 'Node', 'Addresses', 'Pod ranges', 'Pods', 'Proxy', 'Programmed', 'Announces', 'State'];
    return table(
      'Nodes',
      heads,
      items.map((one) =>
        row(heads, [
          sign(!one.ready || one.proxy?.error ? 'broken' : one.proxy?.behind > 0 ? 'warn' : 'ok'),
          h('b', {}, one.name),
          mono(one.addresses),
          mono(one.podRanges),
          count(one.pods),
          one.proxy?.mode ?? h('span', { class: 'quiet' }, 'not known here'),
          programmed(one.proxy),
          mono(one.announces),
          h('span', { class: 'prose' }, one.proxy?.error ?? (one.why || (one.ready ? 'ready' : 'not ready'))),
        ]),
      ),
    );
  });
}

function page(title, where, draw) {
  const body = h('div', {}, h('p', { class: 'quiet' }, 'Loading…'));
  const show = part(body, draw);
  const asking = poll(
    where,
    EVERY,
    (answer) => show(answer.items),
    (error) => show.instead(h('p', { class: 'note' }, error.message)),
  );
  const node = h('section', { class: 'page', 'aria-labelledby': 'title' }, h('h1', { id: 'title' }, title), body);
  return { node, title, stop: asking.stop };
}

function empty(text, how) {
  return h('div', { class: 'empty' }, h('p', {}, text), h('pre', {}, how));
}

function sign(state) {
  const [mark, word] = { ok: ['✓', 'fine'], warn: ['!', 'a warning'], broken: ['✗', 'not well'] }[state];
  return h('span', { class: `sign is-${state}`, role: 'img', 'aria-label': word }, mark);
}

function mono(texts, otherwise = '–') {
  return texts?.length > 0 ? h('span', { class: 'mono' }, texts.join(' ')) : otherwise;
}

function programmed(proxy) {
  if (!proxy) return '–';
  const behind = proxy.behind > 0 ? `, ${proxy.behind} behind` : '';
  return [
    `${proxy.programmed ?? '–'}${behind}`,
    proxy.last && h('span', { class: 'by' }, ' ', since(proxy.last), ' ago'),
  ];
}
