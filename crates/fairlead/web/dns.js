// What the DNS answers, asked as a Pod would ask: every name its resolver tries, in order.

import { get, path } from './api.js';
import { h, put, row, table } from './dom.js';
import { field } from './packet.js';
import { keep } from './router.js';

const TYPES = ['A', 'AAAA', 'SRV', 'CNAME', 'PTR', 'TXT'];

export function dns({ query }) {
  const name = field('name', 'Name', query.get('name') ?? '', 'web, web.default or a whole name');
  const from = field('from', 'Asked by', query.get('from') ?? '', 'pod/NAMESPACE/NAME or node');
  const type = h(
    'select',
    { id: 'type' },
    TYPES.map((one) => h('option', { value: one }, one)),
  );
  type.value = TYPES.includes(query.get('type')) ? query.get('type') : 'A';
  const result = h('div', { class: 'result', role: 'status' });

  async function ask(event) {
    event?.preventDefault();
    const question = { name: name.input.value.trim(), type: type.value, from: from.input.value.trim() };
    if (question.name === '') return put(result, h('p', { class: 'quiet' }, 'Say which name.'));
    keep(['dns'], question);
    put(result, h('p', { class: 'quiet' }, 'Asking…'));
    try {
      return put(result, answer(await get(path('/fairlead/v1/dns', question)), question));
    } catch (error) {
      return put(result, h('p', { class: 'note' }, error.message));
    }
  }

  const node = h(
    'section',
    { class: 'tool', 'aria-labelledby': 'title' },
    h('h1', { id: 'title' }, 'Ask the DNS'),
    h('p', { class: 'lead' }, 'The answer that a Pod or a Node gets, and every name that is tried on the way to it.'),
    h(
      'form',
      { class: 'fields', onsubmit: ask },
      name.node,
      h('div', { class: 'field' }, h('label', { for: 'type' }, 'Type'), type),
      from.node,
      h('button', { type: 'submit', class: 'main' }, 'Ask'),
    ),
    result,
  );
  if (name.input.value !== '') ask();
  return { node, title: 'DNS', keys: { '/': () => name.input.focus() } };
}

function answer({ tried, answer: index }, question) {
  const found = index === null || index === undefined ? null : tried[index];
  const headline = found ? known(found) : unknown(tried, question);
  return [
    h(
      'div',
      { class: `outcome is-${found ? 'ok' : 'broken'}` },
      h(
        'p',
        { class: 'headline' },
        h('span', { class: `sign is-${found ? 'ok' : 'broken'}`, 'aria-hidden': 'true' }, found ? '✓' : '✗'),
        headline,
      ),
    ),
    h(
      'ol',
      { class: 'tried' },
      tried.map((one, at) =>
        h(
          'li',
          { class: at === index ? 'panel chosen' : 'panel' },
          h(
            'p',
            { class: 'question' },
            h('b', { class: 'mono' }, one.name),
            h('span', {}, ` ${one.type} `),
            h('span', { class: `code is-${classOf(one)}` }, one.code),
          ),
          one.why && h('p', { class: 'prose' }, one.why),
          one.answers.length > 0 && records(one.answers),
        ),
      ),
    ),
  ];
}

function known(found) {
  return `${found.name} has ${found.answers.length === 1 ? 'an answer' : `${found.answers.length} answers`}.`;
}

function unknown(tried, { name, type }) {
  const failed = tried.find((one) => !['NOERROR', 'NXDOMAIN'].includes(one.code));
  if (failed) return `The DNS could not say: ${failed.code}.`;
  if (tried.some((one) => one.code === 'NOERROR')) return `${name} is known, but has no ${type} records.`;
  return `Nobody knows ${name}.`;
}

function classOf(one) {
  if (one.code === 'NOERROR') return one.answers.length > 0 ? 'ok' : 'warn';
  return one.code === 'NXDOMAIN' ? 'unknown' : 'broken';
}

function records(answers) {
  const heads = ['Name', 'Type', 'TTL', 'Data'];
  return table(
    'Answers',
    heads,
    answers.map((one) => row(heads, [one.name, one.type, String(one.ttl), one.data])),
    'plain mono',
  );
}
