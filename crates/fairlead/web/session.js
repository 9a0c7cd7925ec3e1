// Who is asking: a link's token becomes a session, once; the session says whether changes are allowed.

import { Refusal, change, get, prove } from './api.js';

/** The token of a link, which is taken out of the address at once so that nobody sees or bookmarks it. */
export function takeToken() {
  const match = /^#token=([^&]+)/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, '', location.pathname);
  return decodeURIComponent(match[1]);
}

/** Signs in with a token. */
export async function signIn(token) {
  const response = await change('POST', '/ui/login', { token });
  const said = await response.json().catch(() => ({}));
  if (typeof said.proof !== 'string') throw new Refusal(0, 'the answer was cut off: `fairlead ui` prints a new link');
  prove(said.proof);
}

/** The session there is, or null. */
export async function current() {
  try {
    return await get('/fairlead/v1/session');
  } catch (error) {
    if (error instanceof Refusal && error.code === 401) return null;
    throw error;
  }
}

/** Ends it. */
export async function signOut() {
  await change('POST', '/ui/logout');
  prove(null);
}
