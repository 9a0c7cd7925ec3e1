// Builds elements. Text always becomes a text node, so nothing that comes from the cluster can be markup.

import { age } from './format.js';

const SVG = 'http://www.w3.org/2000/svg';

/** An element: h('a', {href: '#/', class: 'x', onclick: f}, 'text', [more]). */
export function h(tag, props, ...children) {
  return dress(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function s(tag, props, ...children) {
  return dress(document.createElementNS(SVG, tag), props, children);
}

function dress(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value') element.value = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  fill(element, children);
  return element;
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child);
  }
}

/** Gives an element these children and no others. */
export function put(element, ...children) {
  element.replaceChildren();
  fill(element, children);
  return element;
}

/** Sets a text, and touches nothing if it is that already. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * A part of a view that is drawn again only when what it shows has changed: open details and focus survive. `instead`
 * shows something else until there is data again, be it the same.
 */
export function part(element, draw) {
  let last = null;
  const show = (data) => {
    const now = JSON.stringify(data);
    if (now === last) return;
    last = now;
    put(element, draw(data));
  };
  show.instead = (...children) => {
    last = null;
    put(element, ...children);
  };
  return show;
}

/** How long ago something was, which stays true as time goes by. */
export function since(when) {
  return h('time', { datetime: when, title: when, 'data-since': when }, age(when));
}

/** Makes that so. */
export function tick() {
  setInterval(() => {
    document.querySelectorAll('[data-since]').forEach((one) => say(one, age(one.dataset.since)));
  }, 5000);
}

/** A button that copies a text. */
export function copier(text, label = 'Copy') {
  const button = h('button', { type: 'button', class: 'copy', 'aria-label': `${label}: ${text}` }, label);
  button.addEventListener('click', async () => {
    const done = await copy(text);
    button.textContent = done ? 'Copied' : 'Select and copy';
    setTimeout(() => {
      button.textContent = label;
    }, 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** A command with a button to copy it. */
export function command(text) {
  return h('div', { class: 'command' }, h('code', {}, text), copier(text));
}

/** A table with a caption for those who do not see where it stands. */
export function table(caption, heads, rows, className) {
  const head = heads.map((text) => h('th', { scope: 'col' }, text));
  return h(
    'div',
    { class: 'wide' },
    h(
      'table',
      { class: className ?? 'plain' },
      h('caption', { class: 'unseen' }, caption),
      h('thead', {}, h('tr', {}, head)),
      h('tbody', {}, rows),
    ),
  );
}

/** A row of such a table; on a narrow screen each cell says what it is. */
export function row(heads, cells) {
  return h(
    'tr',
    {},
    cells.map((cell, at) => h('td', { 'data-head': heads[at] }, cell)),
  );
}
