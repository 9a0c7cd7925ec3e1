// A small picture of a short past: a line and the area under it.

import { s } from './dom.js';

const WIDTH = 120;
const HEIGHT = 28;
const SAMPLES = 60;

/** An empty one, and what draws a past into it; `highest` is the top of the picture. */
export function spark(label) {
  const area = s('path', { class: 'area' });
  const line = s('path', { class: 'line' });
  const picture = s(
    'svg',
    {
      class: 'spark',
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': label,
    },
    s('path', { class: 'base', d: `M0 ${HEIGHT - 1}H${WIDTH}` }),
    area,
    line,
  );
  return {
    picture,
    draw(past, highest) {
      const top = highest > 0 ? highest : 1;
      const step = WIDTH / (SAMPLES - 1);
      const from = WIDTH - (past.length - 1) * step;
      const points = past.map((value, at) => `${(from + at * step).toFixed(1)} ${height(value ?? 0, top)}`);
      line.setAttribute('d', points.length > 1 ? `M${points.join('L')}` : '');
      area.setAttribute(
        'd',
        points.length > 1 ? `M${from.toFixed(1)} ${HEIGHT}L${points.join('L')}L${WIDTH} ${HEIGHT}Z` : '',
      );
    },
  };
}

function height(value, top) {
  return (HEIGHT - 1 - (value / top) * (HEIGHT - 4)).toFixed(1);
}
