// Numbers, times and states as people read them.

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** 12,345 */
export function count(number) {
  return number === null || number === undefined ? '–' : grouped(number);
}

/** Digits in threes. Intl.NumberFormat says the same, but to make one takes longer than to draw the page. */
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** 0, 0.4, 12, 1,200: as many digits as one reads at a glance. */
export function rate(number) {
  if (number === null || number === undefined) return '–';
  if (number === 0) return '0';
  return number < 10 ? number.toFixed(1) : grouped(Math.round(number));
}

/** 1.4 MB */
export function bytes(number) {
  if (number === null || number === undefined) return '–';
  let unit = 0;
  let left = number;
  while (left >= 1000 && unit < UNITS.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${left < 10 && unit > 0 ? left.toFixed(1) : Math.round(left)} ${UNITS[unit]}`;
}

/** 5s, 3m, 2h, 4d since a time. */
export function age(when, now = Date.now()) {
  const then = Date.parse(when);
  if (Number.isNaN(then)) return '';
  const seconds = Math.max(0, Math.floor((now - then) / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

/** 14:03:22, with the day where it is not today. */
export function clock(when, now = new Date()) {
  const then = new Date(when);
  if (Number.isNaN(then.getTime())) return '';
  const time = then.toLocaleTimeString('en-GB');
  return then.toDateString() === now.toDateString() ? time : `${then.toLocaleDateString('en-CA')} ${time}`;
}

/** 80/TCP, http 80:30080/TCP */
export function port(one) {
  const node = one.nodePort ? `:${one.nodePort}` : '';
  const protocol = one.protocol && one.protocol !== 'TCP' ? `/${one.protocol}` : '';
  return `${one.port}${node}${protocol}`;
}

/** An address with a port, IPv6 in brackets. */
export function socket(address, number) {
  if (!number) return address;
  return address.includes(':') ? `[${address}]:${number}` : `${address}:${number}`;
}

/** The sign and the words of a verdict: never only a colour. */
export const VERDICTS = {
  ok: { sign: '✓', word: 'fine' },
  warn: { sign: '!', word: 'a warning' },
  broken: { sign: '✗', word: 'broken' },
  unknown: { sign: '?', word: 'unknown' },
};

/** The same for steps. */
export const STATES = {
  ok: { sign: '✓', word: 'holds' },
  bad: { sign: '✗', word: 'does not hold' },
  warn: { sign: '!', word: 'a warning' },
  skipped: { sign: '–', word: 'skipped' },
  unknown: { sign: '?', word: 'not known' },
};

/** Milliseconds as the header says them. */
export function soon(milliseconds) {
  return `${Math.max(1, Math.round(milliseconds / 1000))} s`;
}
