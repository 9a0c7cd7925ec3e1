// Who is asking: a link's token becomes a session, once; the session says whether changes are allowed.

import { Refusal, change, get } from './api.js';

/** The token of a link, which is taken out of the address at once so that nobody sees or bookmarks it. */
export function takeToken() {
  const match = /^#token=([^&]+)/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, '', location.pathname);
  return decodeURIComponent(match[1]);
}

/** Signs in with a token. */
export async function signIn(token) {
  const response = await fetch('/ui/login', {
    method: 'POST',
    credentials: 'same-origin',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (response.ok) return;
  const said = await response.json().catch(() => ({}));
  throw new Refusal(response.status, said.message || 'this link does not work: `fairlead ui` prints a new one');
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
export async function signOut(session) {
  await change('POST', '/ui/logout', session.csrf);
}
