// What would happen to a packet: who sends it, to whom, and the verdict with its reasons.

import { get, path } from './api.js';
import { h, put } from './dom.js';
import { keep, link } from './router.js';

export function packet({ query }) {
  const from = field('from', 'From', query.get('from') ?? 'node', 'pod/NAME, node or an address');
  const to = field('to', 'To', query.get('to') ?? '', 'svc/NAME:PORT or ADDRESS:PORT, /UDP behind if it is');
  const space = field('namespace', 'Namespace', query.get('namespace') ?? '', 'default');
  const result = h('div', { class: 'result', role: 'status' });

  async function ask(event) {
    event?.preventDefault();
    const question = { from: from.input.value.trim(), to: to.input.value.trim(), namespace: space.input.value.trim() };
    if (question.from === '' || question.to === '')
      return put(result, h('p', { class: 'quiet' }, 'Say who sends, and to whom.'));
    keep(['packet'], question);
    put(result, h('p', { class: 'quiet' }, 'Asking…'));
    try {
      return put(result, answer(await get(path('/fairlead/v1/trace', question))));
    } catch (error) {
      return put(result, h('p', { class: 'note' }, error.message));
    }
  }

  const node = h(
    'section',
    { class: 'tool', 'aria-labelledby': 'title' },
    h('h1', { id: 'title' }, 'Follow a packet'),
    h(
      'p',
      { class: 'lead' },
      'What a Node does with a packet, and why. Nothing is sent: the rules are read as the kernel would read them.',
    ),
    h(
      'form',
      { class: 'fields', onsubmit: ask },
      from.node,
      to.node,
      space.node,
      h('button', { type: 'submit', class: 'main' }, 'Follow'),
    ),
    result,
  );
  if (to.input.value !== '') ask();
  return { node, title: 'Packet', keys: { '/': () => to.input.focus() } };
}

/** A field of a form. */
export function field(id, label, value, hint) {
  const input = h('input', {
    type: 'text',
    id,
    value,
    placeholder: hint,
    spellcheck: 'false',
    autocomplete: 'off',
    autocapitalize: 'off',
  });
  return { input, node: h('div', { class: 'field' }, h('label', { for: id }, label), input) };
}

function answer(trace) {
  const { verdict, packet: it } = trace;
  const way = verdict.action === 'forward' ? 'ok' : verdict.action === 'none' ? 'unknown' : 'broken';
  return [
    h(
      'div',
      { class: `outcome is-${way}` },
      h(
        'p',
        { class: 'headline' },
        h(
          'span',
          { class: `sign is-${way}`, 'aria-hidden': 'true' },
          way === 'ok' ? '✓' : way === 'broken' ? '✗' : '?',
        ),
        headline(verdict),
      ),
      h(
        'ol',
        { class: 'hops' },
        hop(it.source, it.interface ? `comes in on ${it.interface}` : 'a process of the Node'),
        hop(`${it.destination} ${it.port}/${it.protocol}`, `on Node ${trace.node}`),
        ends(verdict),
      ),
    ),
    list('Why', trace.reasons, 'reasons'),
    trace.notes?.length > 0 && list('Notes', trace.notes, 'notes'),
    trace.rules?.length > 0 && list(`The rules of mode ${trace.mode} it meets`, trace.rules, 'rules'),
  ];
}

function headline(verdict) {
  switch (verdict.action) {
    case 'forward':
      return verdict.endpoints.length === 1
        ? 'It goes to one endpoint.'
        : `It goes to one of ${verdict.endpoints.length} endpoints.`;
    case 'drop':
      return 'It is dropped: the sender hears nothing.';
    case 'reject':
      return verdict.with === 'tcp-reset' ? 'It is refused with a TCP reset.' : 'It is refused: port unreachable.';
    case 'none':
      return 'It is none of Fairlead’s business: no Service has that address.';
    default:
      return verdict.action;
  }
}

function hop(what, note) {
  return h('li', {}, h('b', {}, what), h('small', {}, note));
}

function ends(verdict) {
  if (verdict.action !== 'forward') return null;
  const [namespace, name] = verdict.service.split('/');
  const whole = verdict.endpoints.reduce((sum, one) => sum + one.weight, 0);
  const part = (one) =>
    whole > 0 && verdict.endpoints.length > 1 ? `${Math.round((one.weight / whole) * 100)} %` : 'always';
  return [
    hop(
      h('a', { href: link(['services', namespace, name]) }, verdict.service),
      [
        verdict.portName && `port ${verdict.portName}`,
        verdict.policy,
        verdict.affinitySeconds && `stays for ${verdict.affinitySeconds} s`,
      ]
        .filter(Boolean)
        .join(', '),
    ),
    h(
      'li',
      { class: 'ends' },
      h(
        'ul',
        {},
        verdict.endpoints.map((one) =>
          h('li', {}, h('b', {}, one.address), h('small', {}, part(one), one.masquerade && ', masqueraded')),
        ),
      ),
    ),
  ];
}

function list(title, lines, name) {
  return h(
    'section',
    { class: 'panel' },
    h('h2', {}, title),
    h(
      'ol',
      { class: `lines ${name}` },
      (lines ?? []).map((one) => h('li', {}, one)),
    ),
  );
}
