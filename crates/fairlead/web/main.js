// Where it begins: signs in, keeps the rows live, and shows the view that the address names.

import { news } from './api.js';
import { h, put, tick } from './dom.js';
import { VIEWS, help, keyDialog } from './help.js';
import { listen } from './keys.js';
import { go, here } from './router.js';
import { Rows } from './rows.js';
import { services } from './services.js';
import { current, signIn, signOut, takeToken } from './session.js';
import { announce, bare, nextTheme, shell } from './shell.js';
import { signedOut } from './signin.js';

/** Views whose modules are fetched when they are wanted, or when the first view is there and nothing else is to be done. */
const LATER = {
  service: async () => (await import('./service.js')).service,
  packet: async () => (await import('./packet.js')).packet,
  dns: async () => (await import('./dns.js')).dns,
  events: async () => (await import('./past.js')).eventList,
  history: async () => (await import('./past.js')).history,
  balancers: async () => (await import('./places.js')).balancers,
  nodes: async () => (await import('./places.js')).nodes,
};
/** How long after the first rows that is. */
const IDLE = 500;
/** What makes a view, as far as it is here. */
const makers = { services, help };
const main = document.getElementById('main');
let view = null;
let rows = null;
/** Counts what was asked to be shown: what comes too late is not shown. */
let turn = 0;

/** Signs in if there is a link, and shows the page or the door. */
async function begin() {
  const token = takeToken();
  try {
    if (token) await signIn(token);
  } catch (error) {
    return close(error.code === 0 ? 'unreachable' : 'used', error.message);
  }
  try {
    // Asked for beside the session, not after it: they are what takes longest.
    rows = new Rows();
    rows.start();
    const session = await current();
    return session ? open(session) : close('out');
  } catch (error) {
    return close('unreachable', error.message);
  }
}

function open(session) {
  const leave = async () => {
    try {
      await signOut();
    } catch (error) {
      return announce(`You are still signed in: ${error.message}`);
    }
    return close('out');
  };
  const frame = shell({ session, leave });
  let shown = false;
  const show = async () => {
    turn += 1;
    const now = turn;
    const { parts, query } = here();
    const one = parts[0] === 'services' && parts.length >= 3;
    frame.mark(parts[0]);
    const make = await maker(one ? 'service' : parts[0]);
    if (now !== turn) return;
    view?.stop?.();
    view = make({ parts, query, session, rows, announce });
    put(main, view.node);
    // Whoever reads with a keyboard goes on in what is new.
    if (shown && document.activeElement === document.body) main.focus({ preventScroll: true });
    shown = true;
    main.className = `view-${one ? 'service' : parts[0]}`;
    main.removeAttribute('aria-busy');
    document.title = `${view.title} · Fairlead`;
    main.scrollTop = 0;
  };
  window.addEventListener('hashchange', onHash);
  onHash.show = show;
  news.addEventListener('signed-out', () => close('out'), { once: true });
  show();
  setTimeout(() => Object.keys(LATER).forEach(maker), IDLE);
}

/** What makes a view, fetched if need be; what nobody knows is the list. */
async function maker(name) {
  if (!(name in LATER)) return makers[name] ?? services;
  try {
    return (makers[name] ??= await LATER[name]());
  } catch {
    return absent;
  }
}

/** Stands for a view whose modules cannot be fetched. */
function absent() {
  const again = () => location.reload();
  const button = h('button', { type: 'button', onclick: again }, 'Load the page again');
  const text = 'This part of the page cannot be fetched: the server does not answer, or is another one now.';
  return { node: h('section', {}, h('h1', {}, 'Not there'), h('p', { class: 'note' }, text), button), title: 'Not there' };
}

/** A link that is pasted into an open page is a link, too. */
function onHash() {
  if (location.hash.startsWith('#token=')) location.reload();
  else onHash.show?.();
}

/** Shows the door: why it is closed is 'out', 'used' or 'unreachable', and a sentence. */
function close(why, message = null) {
  window.removeEventListener('hashchange', onHash);
  window.addEventListener('hashchange', () => {
    if (location.hash.startsWith('#token=')) location.reload();
  });
  turn += 1;
  view?.stop?.();
  rows?.stop();
  view = null;
  bare();
  main.removeAttribute('aria-busy');
  main.className = 'view-door';
  document.title = 'Fairlead';
  put(main, signedOut(why, message));
}

const jumps = Object.fromEntries(VIEWS.map(([path, , key]) => [`g ${key}`, () => go([path])]));
listen({ ...jumps, '?': keyDialog, t: nextTheme, Escape: () => document.activeElement?.blur() }, () => view?.keys);
// The address names a view, so this link cannot be an ordinary one.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
tick();
begin();
