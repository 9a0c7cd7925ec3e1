// The few changes the page can make, for a session that may write: draining an endpoint, deleting a Service.

import { Refusal, change } from './api.js';
import { h } from './dom.js';

const WEIGHT = 'fairlead.dev/weight';

/** A button that drains an endpoint's Pod, or takes that back; nothing where that cannot be done. */
export function drain(session, namespace, endpoint, after) {
  const pod = /^pod\/(.+)$/i.exec(endpoint.target ?? '')?.[1];
  if (!session.write || !pod) return null;
  const drained = endpoint.weight === 0;
  const patch = { metadata: { annotations: { [WEIGHT]: drained ? null : '0' } } };
  const where = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`;
  const run = () => change('PATCH', where, patch, 'application/merge-patch+json');
  const title = drained ? `pod/${pod} gets new connections again` : `pod/${pod} gets no new connections`;
  return h(
    'button',
    { type: 'button', class: 'small', title, onclick: () => tried(run, after) },
    drained ? 'Undrain' : 'Drain',
  );
}

/** A button that deletes a Service once its name was confirmed. */
export function remove(session, namespace, name, after) {
  if (!session.write) return null;
  const where = `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${encodeURIComponent(name)}`;
  return h(
    'button',
    {
      type: 'button',
      class: 'small danger',
      onclick: () => confirm(namespace, name, () => tried(() => change('DELETE', where), after)),
    },
    'Delete…',
  );
}

function confirm(namespace, name, then) {
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const dialog = h(
    'dialog',
    { class: 'ask', 'aria-labelledby': 'ask-title', onclose: () => dialog.remove() },
    h('h2', { id: 'ask-title' }, `Delete the Service ${namespace}/${name}?`),
    h('p', {}, 'Its addresses are given back, and connections to them are refused. Its Pods stay.'),
    h(
      'div',
      { class: 'row' },
      h('button', { type: 'button', onclick: close, autofocus: true }, 'Keep it'),
      h(
        'button',
        {
          type: 'button',
          class: 'danger',
          onclick: () => {
            close();
            then();
          },
        },
        'Delete it',
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

async function tried(run, after) {
  try {
    await run();
    after(null);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    after(error);
  }
}
