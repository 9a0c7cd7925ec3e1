// What is shown without a session: why there is none, and how to get one.

import { command, h } from './dom.js';

/** Why there is none. */
const TITLES = {
  out: 'You are not signed in',
  used: 'That link does not open',
  unreachable: 'The page cannot be shown',
};

/** The page for one of these, with a sentence about it if there is one. */
export function signedOut(why, message) {
  const again = () => location.reload();
  return h(
    'section',
    { class: 'door', 'aria-labelledby': 'title' },
    h('img', { src: 'icon.svg', alt: '', width: '56', height: '56' }),
    h('h1', { id: 'title' }, TITLES[why]),
    message && h('p', { class: 'note', role: 'alert' }, message),
    why === 'unreachable' && h('button', { type: 'button', class: 'again', onclick: again }, 'Try again'),
    h('p', {}, 'On a machine with a kubeconfig of this cluster, this prints a link that signs you in:'),
    command('fairlead ui'),
    h('p', { class: 'quiet' }, 'A link works once. It may only read, unless it is made with --write.'),
  );
}
