// The frame around the views: the bar with its links, the theme, whether the page is live, and what is said aloud.

import { news } from './api.js';
import { h, put, say } from './dom.js';
import { soon } from './format.js';
import { VIEWS, keyDialog } from './help.js';
import { link } from './router.js';

const THEMES = ['system', 'light', 'dark'];

/** Draws the bar; `leave` ends the session. */
export function shell({ session, leave }) {
  // The first session finds the links in the page.
  const nav = document.getElementById('nav');
  if (nav.childElementCount === 0) put(nav, VIEWS.map(linkTo));
  const links = [...nav.children];
  const state = h('span', { class: 'live', role: 'status' }, 'connecting');
  put(
    document.getElementById('tools'),
    state,
    session.write && h('span', { class: 'tag' }, 'may write'),
    themeButton(),
    h('button', { type: 'button', class: 'icon', title: 'Keys (?)', 'aria-label': 'Keys', onclick: keyDialog }, '?'),
    h('button', { type: 'button', class: 'small', onclick: leave }, 'Sign out'),
  );
  news.addEventListener('fine', () => {
    say(state, 'live');
    state.className = 'live on';
  });
  news.addEventListener('trouble', ({ detail }) => {
    say(state, `${detail.message}; next try in ${soon(detail.wait)}`);
    state.className = 'live off';
  });
  return {
    /** Marks the link of the view that is shown. */
    mark(view) {
      for (const one of links) {
        if (one.dataset.view !== view) {
          one.removeAttribute('aria-current');
          continue;
        }
        one.setAttribute('aria-current', 'page');
        one.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      }
    },
  };
}

function linkTo([path, word, key]) {
  return h('a', { href: link([path]), 'data-view': path, title: `g ${key}` }, word);
}

/** The bar without a session has nothing in it but the name. */
export function bare() {
  put(document.getElementById('nav'));
  put(document.getElementById('tools'), themeButton());
}

/** Says something to those who listen, and shows it for a moment to those who look. */
export function announce(text) {
  const place = document.getElementById('said');
  say(place, text);
  place.classList.add('shown');
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => {
    place.classList.remove('shown');
    say(place, '');
  }, 4000);
}

/** Next of: as the system has it, light, dark. */
export function nextTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? 'system') + 1) % THEMES.length];
  if (next === 'system') delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    if (next === 'system') localStorage.removeItem('theme');
    else localStorage.setItem('theme', next);
  } catch {
    /* It holds until the page is closed. */
  }
  document.querySelectorAll('.theme').forEach((button) => say(button, signOf(next)));
  announce(`Theme: ${next}`);
}

function themeButton() {
  const now = document.documentElement.dataset.theme ?? 'system';
  return h(
    'button',
    {
      type: 'button',
      class: 'icon theme',
      title: 'Light or dark (t)',
      'aria-label': 'Light or dark',
      onclick: nextTheme,
    },
    signOf(now),
  );
}

function signOf(theme) {
  return { system: '◐', light: '○', dark: '●' }[theme];
}
