// A table of any length of which only the rows in sight exist. Rows have one height, said by --row in the style sheet.

import { h } from './dom.js';

/** Rows drawn beyond what is in sight, above and below. */
const BEYOND = 8;

/**
 * heads: [[text, class, whether one can sort by it]]; key(row): what distinguishes it; draw(row): its cells; open(row):
 * Enter or a click; sort(class): somebody wants the rows by that column. Returns the element, and functions to show other
 * rows, to mark the column they are sorted by, and to move the choice.
 */
export function list({ caption, heads, key, draw, open, sort }) {
  const above = h('tr', { class: 'gap', 'aria-hidden': 'true' });
  const below = h('tr', { class: 'gap', 'aria-hidden': 'true' });
  const body = h('tbody', { role: 'rowgroup' }, above, below);
  const grid = h(
    'table',
    { class: 'rows', role: 'presentation' },
    h(
      'thead',
      { role: 'rowgroup' },
      h(
        'tr',
        { role: 'row', 'aria-rowindex': '1' },
        heads.map(([text, name, sorts]) =>
          h(
            'th',
            { role: 'columnheader', scope: 'col', class: name, 'data-by': name },
            sorts ? sorter(text, () => sort(name)) : text,
          ),
        ),
      ),
    ),
    body,
  );
  // What has the focus is the grid, so that it can say which row is chosen.
  const box = h('div', { class: 'scroller', tabindex: '0', role: 'grid', 'aria-label': caption }, grid);
  const drawn = new Map();
  let rows = [];
  let chosen = -1;
  let height = 40;

  function measure() {
    height = parseFloat(getComputedStyle(box).getPropertyValue('--row')) || 40;
    paint();
  }

  function paint() {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - BEYOND);
    const last = Math.min(rows.length, Math.ceil((box.scrollTop + box.clientHeight) / height) + BEYOND);
    const wanted = new Set();
    let before = above;
    for (let at = first; at < last; at += 1) {
      const row = rows[at];
      wanted.add(key(row));
      const line = lineOf(row, at);
      if (before.nextSibling !== line) before.after(line);
      before = line;
    }
    for (const [name, entry] of drawn) {
      if (wanted.has(name)) continue;
      entry.line.remove();
      drawn.delete(name);
    }
    gap(above, first * height);
    gap(below, (rows.length - last) * height);
    // The heads are a row, too.
    box.setAttribute('aria-rowcount', String(rows.length + 1));
    const active = chosen >= first && chosen < last ? drawn.get(key(rows[chosen])).line.id : '';
    if (active === '') box.removeAttribute('aria-activedescendant');
    else box.setAttribute('aria-activedescendant', active);
  }

  function lineOf(row, at) {
    const name = key(row);
    let entry = drawn.get(name);
    if (!entry || entry.row !== row) {
      const line = h('tr', { role: 'row', id: `row/${name}`, class: `is-${row.verdict}`, 'data-key': name }, draw(row));
      for (const cell of line.cells) cell.setAttribute('role', 'gridcell');
      line.addEventListener('click', (event) => {
        if (event.target.closest('a, button') || String(getSelection()) !== '') return;
        open(row);
      });
      // A row that changes while its link has the focus keeps it.
      if (entry) {
        const focused = entry.line.contains(document.activeElement);
        entry.line.replaceWith(line);
        if (focused) line.querySelector('a')?.focus({ preventScroll: true });
      }
      entry = { row, line };
      drawn.set(name, entry);
    }
    entry.line.setAttribute('aria-rowindex', String(at + 2));
    entry.line.setAttribute('aria-selected', String(at === chosen));
    return entry.line;
  }

  /** Other rows; the choice stays on what was chosen. */
  function show(next) {
    const was = rows[chosen] && key(rows[chosen]);
    rows = next;
    chosen = was === undefined ? -1 : rows.findIndex((row) => key(row) === was);
    paint();
  }

  /** Marks the column by which rows are sorted; '' is none. */
  function mark(by, down) {
    for (const head of grid.tHead.rows[0].cells) {
      if (head.dataset.by === by) head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
  }

  /** Moves the choice by some rows, and scrolls so that it is in sight. */
  function move(by) {
    if (rows.length === 0) return;
    chosen = Math.min(rows.length - 1, Math.max(0, chosen < 0 && by > 0 ? by - 1 : chosen + by));
    const top = chosen * height;
    const head = grid.tHead.offsetHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight - head)
      box.scrollTop = top + height - box.clientHeight + head;
    paint();
  }

  const page = () => Math.max(1, Math.floor(box.clientHeight / height) - 2);
  const keys = {
    j: () => move(1),
    ArrowDown: () => move(1),
    k: () => move(-1),
    ArrowUp: () => move(-1),
    PageDown: () => move(page()),
    PageUp: () => move(-page()),
    Home: () => move(-rows.length),
    End: () => move(rows.length),
    'g g': () => move(-rows.length),
    G: () => move(rows.length),
    Enter: (event) => {
      if (event.target.closest?.('a, button') || !rows[chosen]) return false;
      open(rows[chosen]);
      return true;
    },
  };
  box.addEventListener('scroll', () => requestAnimationFrame(paint), { passive: true });
  const watcher = new ResizeObserver(measure);
  watcher.observe(box);
  return {
    box,
    show,
    mark,
    keys,
    top: () => {
      box.scrollTop = 0;
      chosen = -1;
      paint();
    },
    stop: () => watcher.disconnect(),
  };
}

function sorter(text, sort) {
  return h('button', { type: 'button', class: 'sort', onclick: sort }, text);
}

function gap(line, pixels) {
  line.style.height = `${pixels}px`;
  line.hidden = pixels === 0;
}
