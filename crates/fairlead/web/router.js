// Addresses within the page: '#/services/default/web?x=1' is a path of parts and a query.

/** Where we are. */
export function here() {
  const [where, query] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const parts = where
    .split('/')
    .filter((part) => part !== '')
    .map(decode);
  return { parts: parts.length === 0 ? ['services'] : parts, query: new URLSearchParams(query ?? '') };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of something. */
export function link(parts, query = {}) {
  const given = Object.entries(query).filter(
    ([, value]) => value !== '' && value !== null && value !== undefined && value !== false,
  );
  const asked = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  return `#/${parts.map(encodeURIComponent).join('/')}${asked}`;
}

/** Goes there. */
export function go(parts, query) {
  location.hash = link(parts, query);
}

/** Keeps what a form says in the address, without a new step to go back to. */
export function keep(parts, query) {
  history.replaceState(null, '', link(parts, query));
}
