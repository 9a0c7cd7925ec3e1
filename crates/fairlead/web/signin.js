// What is shown without a session: how to get one.

import { command, h } from './dom.js';

/** The page, with what was wrong with a link if one was used. */
export function signedOut(message) {
  return h(
    'section',
    { class: 'door', 'aria-labelledby': 'title' },
    h('img', { src: 'icon.svg', alt: '', width: '56', height: '56' }),
    h('h1', { id: 'title' }, message ? 'That link does not open' : 'You are not signed in'),
    message && h('p', { class: 'note', role: 'alert' }, message),
    h('p', {}, 'On a machine with a kubeconfig of this cluster, this prints a link that signs you in:'),
    command('fairlead ui'),
    h('p', { class: 'quiet' }, 'A link works once. It may only read, unless it is made with --write.'),
  );
}
