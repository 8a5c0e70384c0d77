// Takes the fragment out of the address before anything else: it may have the code of an activation,
// or the link to an account. This file imports nothing, so it runs as soon as the page is there,
// and even if another file of the app cannot be loaded.

/** Takes the fragment out of the address and the history, and returns it. */
export function takeFragment() {
  const fragment = location.hash.slice(1);
  if (fragment !== "") history.replaceState(history.state, "", location.pathname);
  return fragment;
}

/** The fragment with which the page was opened. */
export const firstFragment = takeFragment();
