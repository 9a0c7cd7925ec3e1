// An object as YAML, as kubectl would print it.

/** What needs no quotes. What begins with a dot may be a number: .5, .inf, .nan. */
const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./-]*$/;
/** Text of several lines that can stand as it is: it does not begin with a blank, and all of it can be printed. */
const LINES = /^(?=\S)[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]*$/;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~)$/i;
/** Objects are not that deep; what is deeper is cut off. */
const DEEPEST = 40;

/** The text; what only machines read is left out. */
export function yaml(object) {
  const { managedFields, ...metadata } = object.metadata ?? {};
  const whole = object.metadata ? { ...object, metadata } : object;
  const order = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];
  const keys = [...order.filter((key) => key in whole), ...Object.keys(whole).filter((key) => !order.includes(key))];
  return map(whole, keys, 0);
}

function map(object, keys, depth) {
  return keys.map((key) => `${'  '.repeat(depth)}${plain(key)}:${after(object[key], depth)}`).join('');
}

function after(value, depth) {
  if (depth > DEEPEST) return ' …\n';
  if (Array.isArray(value)) return value.length === 0 ? ' []\n' : `\n${value.map((one) => item(one, depth)).join('')}`;
  if (value !== null && typeof value === 'object') {
    const keys = Object.keys(value);
    return keys.length === 0 ? ' {}\n' : `\n${map(value, keys, depth + 1)}`;
  }
  return ` ${scalar(value, depth)}\n`;
}

function item(value, depth) {
  const indent = '  '.repeat(depth);
  const inner = value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 0;
  if (!inner) return `${indent}-${after(value, depth)}`;
  return `${indent}- ${map(value, Object.keys(value), depth + 1).slice(indent.length + 2)}`;
}

function scalar(value, depth = 0) {
  if (typeof value !== 'string') return String(value);
  return value.includes('\n') && LINES.test(value) ? block(value, '  '.repeat(depth + 1)) : plain(value);
}

/** Several lines. What follows `|` says how many ends of lines the last one has: `-` none, nothing one, `+` several. */
function block(value, indent) {
  const body = value.replace(/\n+$/, '');
  const ends = value.length - body.length;
  const lines = body.split('\n').map((line) => (line === '' ? '' : indent + line));
  return `|${['-', ''][ends] ?? '+'}\n${lines.join('\n')}${'\n'.repeat(Math.max(0, ends - 1))}`;
}

function plain(text) {
  return PLAIN.test(text) && !WORDS.test(text) ? text : JSON.stringify(text);
}
