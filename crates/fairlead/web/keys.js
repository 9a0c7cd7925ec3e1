// Keys: one map for the whole page, one that each view adds, and sequences of two such as `g s`.

const TOGETHER = 1200;

/** Hands keys to `global` and to what `local()` returns, whose keys come first. */
export function listen(global, local) {
  let first = '';
  let timer;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    // A dialog has the keys to itself.
    if (document.querySelector('dialog[open]')) return;
    if (typing(event.target) && event.key !== 'Escape') return;
    const name = first ? `${first} ${event.key}` : event.key;
    first = '';
    clearTimeout(timer);
    const does = local()?.[name] ?? global[name];
    if (does) {
      if (does(event) !== false) event.preventDefault();
    } else if (starts(event.key, local(), global)) {
      first = event.key;
      timer = setTimeout(() => {
        first = '';
      }, TOGETHER);
    }
  });
}

function starts(key, ...maps) {
  return maps.some((map) => Object.keys(map ?? {}).some((name) => name.startsWith(`${key} `)));
}

function typing(target) {
  return target instanceof HTMLElement && (target.matches('input, textarea, select') || target.isContentEditable);
}
