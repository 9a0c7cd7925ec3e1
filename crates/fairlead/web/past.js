// Two views of time: Events as the cluster tells them, and the history of every change.

import { get, path, poll } from './api.js';
import { h, part, say } from './dom.js';
import { clock, count } from './format.js';
import { keep } from './router.js';
import { eventOf, events, timeline } from './timeline.js';

const EVERY = 5000;
/** Events asked for at once, how often for one look, and how many are shown. The API tells them by name, not by time. */
const ASKED = 2000;
const PAGES = 10;
const SHOWN = 200;

/** All Events, or the first of them by name and that there are more. */
async function allEvents(signal) {
  const items = [];
  let rest = '';
  for (let page = 0; page < PAGES; page += 1) {
    const answer = await get(path('/api/v1/events', { limit: ASKED, continue: rest }), signal);
    items.push(...answer.items);
    rest = answer.metadata?.continue ?? '';
    if (rest === '') break;
  }
  return { items, more: rest !== '' };
}

export function eventList({ query }) {
  const search = h('input', {
    type: 'search',
    value: query.get('q') ?? '',
    placeholder: 'reason, object, words',
    'aria-label': 'Search Events',
  });
  const warnings = h('input', { type: 'checkbox', id: 'warnings' });
  warnings.checked = query.has('warnings');
  const body = h('div', {});
  const note = h('p', { class: 'found', role: 'status' });
  const show = part(body, events);
  let all = [];
  let more = false;

  function draw() {
    const words = search.value.toLowerCase().split(/\s+/);
    const fits = (one) =>
      (!warnings.checked || one.type === 'Warning') &&
      words.every((word) => `${one.namespace} ${one.about} ${one.reason} ${one.message}`.toLowerCase().includes(word));
    const chosen = all.filter(fits);
    const found = chosen.length > SHOWN ? `the newest ${SHOWN} of ${count(chosen.length)}` : count(chosen.length);
    say(note, more ? `${found}, among ${count(all.length)}: the cluster has more than are read here` : found);
    show(chosen.slice(0, SHOWN));
    keep(['events'], { q: search.value, warnings: warnings.checked ? '1' : '' });
  }

  search.addEventListener('input', draw);
  warnings.addEventListener('change', draw);
  const asking = poll(
    allEvents,
    EVERY,
    (answer) => {
      all = answer.items.map(eventOf).sort((a, b) => Date.parse(b.last) - Date.parse(a.last));
      more = answer.more;
      draw();
    },
    (error) => show.instead(h('p', { class: 'note' }, error.message)),
  );
  const node = h(
    'section',
    { class: 'page', 'aria-labelledby': 'title' },
    h('h1', { id: 'title' }, 'Events'),
    h(
      'div',
      { class: 'filter' },
      h('div', { class: 'field search' }, search, h('kbd', { 'aria-hidden': 'true' }, '/')),
      h('label', { class: 'check', for: 'warnings' }, warnings, 'warnings only'),
      note,
    ),
    body,
  );
  return { node, title: 'Events', keys: { '/': () => search.focus() }, stop: asking.stop };
}

const SPANS = [
  ['10m', 'ten minutes'],
  ['1h', 'an hour'],
  ['24h', 'a day'],
  ['', 'all that is kept'],
];

export function history({ query }) {
  const subject = h('input', {
    type: 'search',
    value: query.get('subject') ?? '',
    placeholder: 'svc/NAMESPACE/NAME, or everything',
    'aria-label': 'Of what',
    spellcheck: 'false',
  });
  const since = h(
    'select',
    { 'aria-label': 'Since' },
    SPANS.map(([value, text]) => h('option', { value }, text)),
  );
  since.value = query.get('since') ?? '';
  const body = h('div', {});
  const note = h('p', { class: 'found', role: 'status' });
  const show = part(body, (items) => timeline(items, true));
  let asking = start();

  function start() {
    const question = { subject: subject.value.trim(), since: since.value };
    return poll(
      path('/fairlead/v1/history', { ...question, limit: 200 }),
      EVERY,
      (answer) => {
        say(note, `${count(answer.kept.revisions)} revisions are kept, since ${clock(answer.kept.from)}`);
        show(answer.items);
      },
      (error) => show.instead(h('p', { class: 'note' }, error.message)),
    );
  }

  function again(event) {
    event?.preventDefault();
    asking.stop();
    keep(['history'], { subject: subject.value.trim(), since: since.value });
    asking = start();
  }

  since.addEventListener('change', again);
  const node = h(
    'section',
    { class: 'page', 'aria-labelledby': 'title' },
    h('h1', { id: 'title' }, 'History'),
    h(
      'form',
      { class: 'filter', onsubmit: again },
      h('div', { class: 'field search' }, subject, h('kbd', { 'aria-hidden': 'true' }, '/')),
      since,
      note,
    ),
    body,
  );
  return { node, title: 'History', keys: { '/': () => subject.focus() }, stop: () => asking.stop() };
}
