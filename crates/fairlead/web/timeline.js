// What changed and when, newest first; and Events.

import { h, row, since, table } from './dom.js';
import { clock, count } from './format.js';
import { link } from './router.js';

/** Changes as a list along a line. */
export function timeline(items, whole = false) {
  if (items.length === 0) return h('p', { class: 'quiet' }, 'Nothing has changed in the time that is kept.');
  return h(
    'ol',
    { class: 'timeline' },
    items.map((item) =>
      h(
        'li',
        { class: `change is-${item.change}` },
        h('time', { datetime: item.at, title: `${item.at}, revision ${item.revision}` }, clock(item.at)),
        h(
          'div',
          {},
          h(
            'p',
            { class: 'what' },
            h('b', {}, `${item.kind} `),
            whole ? subject(item) : item.name,
            item.change === 'event' ? '' : ` ${item.change}`,
            item.by && h('span', { class: 'by' }, ` by ${item.by}`),
          ),
          item.lines?.length > 0 &&
            h(
              'ul',
              { class: 'lines' },
              item.lines.map((line) => h('li', {}, line)),
            ),
        ),
      ),
    ),
  );
}

function subject(item) {
  const name = item.namespace ? `${item.namespace}/${item.name}` : item.name;
  return item.kind === 'Service' ? h('a', { href: link(['services', item.namespace, item.name]) }, name) : name;
}

/** Events as a table. */
export function events(items) {
  if (items.length === 0) return h('p', { class: 'quiet' }, 'No Events.');
  const about = items.some((item) => item.about);
  const heads = ['Last', 'Type', 'Reason', ...(about ? ['About'] : []), 'Message', 'Count'];
  return table(
    'Events',
    heads,
    items.map((item) =>
      row(heads, [
        since(item.last),
        h('span', { class: `kind is-${item.type === 'Warning' ? 'warn' : 'ok'}` }, item.type),
        item.reason,
        ...(about ? [item.about] : []),
        h('span', { class: 'prose' }, item.message),
        count(item.count),
      ]),
    ),
    'plain events',
  );
}

/** An Event of the API as the page's own. */
export function eventOf(object) {
  const about = object.involvedObject ?? object.regarding ?? {};
  return {
    type: object.type,
    reason: object.reason,
    message: object.message ?? object.note ?? '',
    count: object.series?.count ?? object.count ?? 1,
    last:
      object.series?.lastObservedTime ?? object.lastTimestamp ?? object.eventTime ?? object.metadata?.creationTimestamp,
    namespace: about.namespace ?? object.metadata?.namespace ?? '',
    about: `${(about.kind ?? '').toLowerCase()}/${about.name ?? ''}`,
  };
}
