// A report of `explain`: the first cause and its remedy, and the whole chain step by step.

import { command, h } from './dom.js';
import { STATES, VERDICTS } from './format.js';

/** What is wrong first, in a sentence, and what to do. Nothing if all is well. */
export function cause(report) {
  const found = firstOf(report);
  if (!found) return null;
  return h(
    'div',
    { class: `cause is-${report.verdict}` },
    !report.summary?.includes(found.message) && h('p', { class: 'message' }, found.message),
    found.remedy?.length > 0 && h('div', { class: 'remedy' }, h('h3', {}, 'What to do'), found.remedy.map(remedy)),
    h('p', { class: 'reason' }, found.cause),
  );
}

/** The first finding of a report: the one it names, else the first there is. */
function firstOf(report) {
  const all = (report?.steps ?? []).flatMap((step) => step.findings ?? []);
  return all.find((one) => one.cause === report.first) ?? all[0];
}

/** A remedy that is a command can be copied; a sentence is a sentence. */
function remedy(text) {
  return /^(kubectl|fairlead|sudo|ip|nft|sysctl|modprobe|systemctl|curl|dig|iptables|conntrack)\s/.test(text)
    ? command(text)
    : h('p', {}, text);
}

/** Every step with its evidence; those that do not hold are open. */
export function steps(report) {
  return h(
    'ol',
    { class: 'steps' },
    (report?.steps ?? []).map((step) => {
      const { sign, word } = STATES[step.state] ?? STATES.unknown;
      const mark = h('span', { class: `sign is-${classOf(step.state)}`, role: 'img', 'aria-label': word }, sign);
      const more = [
        ...(step.evidence ?? []).map((line) => h('p', { class: 'evidence' }, line)),
        ...(step.findings ?? []).map(finding),
      ];
      if (more.length === 0)
        return h('li', { class: `step is-${step.state}` }, h('p', { class: 'head' }, mark, step.title));
      return h(
        'li',
        { class: `step is-${step.state}` },
        h(
          'details',
          { open: step.state === 'bad' || step.state === 'warn' },
          h('summary', { class: 'head' }, mark, step.title),
          more,
        ),
      );
    }),
  );
}

function finding(one) {
  return h('div', { class: 'finding' }, h('p', {}, one.message), (one.remedy ?? []).map(remedy));
}

function classOf(state) {
  return { ok: 'ok', bad: 'broken', warn: 'warn' }[state] ?? 'unknown';
}

/** The verdict of a report with its sign. */
export function verdict(report) {
  const { sign, word } = VERDICTS[report.verdict] ?? VERDICTS.unknown;
  return h(
    'p',
    { class: `verdict is-${report.verdict}` },
    h('span', { class: `sign is-${report.verdict}`, role: 'img', 'aria-label': word }, sign),
    h('span', {}, report.summary),
  );
}
