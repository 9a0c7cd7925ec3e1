// An object as YAML, as kubectl would print it.

const PLAIN = /^[A-Za-z_./][A-Za-z0-9_./-]*$/;
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
  return keys.map((key) => `${'  '.repeat(depth)}${scalar(key)}:${after(object[key], depth)}`).join('');
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
  if (value.includes('\n'))
    return `|-\n${value
      .split('\n')
      .map((line) => '  '.repeat(depth + 1) + line)
      .join('\n')}`;
  return PLAIN.test(value) && !WORDS.test(value) ? value : JSON.stringify(value);
}
