// Help: the keys, and the same questions in a terminal.

import { command, h } from './dom.js';

const KEYS = [
  ['/', 'search'],
  ['j  k  ↓  ↑', 'next, previous row'],
  ['g g   G', 'first, last row'],
  ['Enter', 'open'],
  ['Esc', 'clear, close, go back'],
  ['b', 'broken first'],
  ['x', 'only the broken'],
  ['p', 'follow a packet to this Service'],
  ['t', 'light or dark'],
  ['?', 'this'],
];
/** Where `g` and a letter lead; also the order of the bar. */
export const VIEWS = [
  ['services', 'Services', 's'],
  ['packet', 'Packet', 'p'],
  ['dns', 'DNS', 'd'],
  ['events', 'Events', 'e'],
  ['history', 'History', 'h'],
  ['balancers', 'Load balancers', 'l'],
  ['nodes', 'Nodes', 'n'],
];
const COMMANDS = [
  ['fairlead explain svc/web', 'why a Service does not work'],
  ['fairlead trace --from node --to svc/web:80', 'what happens to a packet'],
  ['fairlead history svc/web', 'what changed'],
  ['fairlead top', 'what flows now'],
  ['fairlead ui', 'a new link to this page'],
];

const READS = 'read. A link that may write is made with `fairlead ui --write`.';

export function help({ session }) {
  const node = h(
    'section',
    { class: 'tool', 'aria-labelledby': 'title' },
    h('h1', { id: 'title' }, 'Help'),
    keysOf(),
    h('h2', {}, 'In a terminal'),
    COMMANDS.map(([line, what]) => h('div', { class: 'line' }, command(line), h('p', { class: 'quiet' }, what))),
    h('h2', {}, 'This session'),
    h(
      'p',
      {},
      `Fairlead ${session.version}. You are ${session.user}, and may ${session.write ? 'read and write.' : READS}`,
    ),
  );
  return { node, title: 'Help' };
}

/** The keys as a dialog over whatever is shown. */
export function keyDialog() {
  const dialog = h(
    'dialog',
    { class: 'ask', 'aria-labelledby': 'keys-title', onclose: () => dialog.remove() },
    h('h2', { id: 'keys-title' }, 'Keys'),
    keysOf(),
    h(
      'div',
      { class: 'row' },
      h('a', { href: '#/help', onclick: () => dialog.close() }, 'All help'),
      h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, 'Close'),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

function keysOf() {
  const all = [...KEYS, ...VIEWS.map(([, word, key]) => [`g ${key}`, word])];
  return h(
    'dl',
    { class: 'keys' },
    all.map(([key, what]) => h('div', {}, h('dt', {}, h('kbd', {}, key)), h('dd', {}, what))),
  );
}
