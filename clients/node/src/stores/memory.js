/** A store in memory. It forgets all pinned keys when the process ends: for tests and trials. */

import { decode, encode } from "../jws.js";
import { EVENT_LIFE, REQUEST_LIFE, SECRET_LIFE } from "./store.js";

/** No method awaits, so each one is atomic. */
export class MemoryStore {
  #tokens = new Map();
  #secrets = new Map();
  #phones = new Map(); // by user, then by device; the key is null once it is unpinned
  #open = new Map();
  #seen = new Map();

  addUser(username, token) {
    this.#tokens.set(username, token);
  }

  token(username) {
    return this.#tokens.get(username) ?? null;
  }

  addSecret(username, k, now) {
    if (!this.#secrets.has(username)) this.#secrets.set(username, new Map());
    const own = this.#secrets.get(username);
    deleteOld(own, now - SECRET_LIFE);
    own.set(encode(k), now);
  }

  secrets(username, now) {
    const own = [...of(this.#secrets, username)];
    return own.filter(([, at]) => at > now - SECRET_LIFE).map(([k]) => decode(k));
  }

  pin(username, device, jwk, k) {
    const phones = of(this.#phones, username);
    if (!of(this.#secrets, username).has(encode(k)) || phones.has(device)) return false;
    this.#secrets.delete(username);
    this.#phones.set(username, phones.set(device, jwk));
    return true;
  }

  pins(username) {
    return new Map([...of(this.#phones, username)].filter(([, jwk]) => jwk !== null));
  }

  wasPinned(username) {
    return of(this.#phones, username).size > 0;
  }

  unpin(username, device) {
    const phones = of(this.#phones, username);
    if (phones.get(device) === null) return; // it was unpinned before
    this.#secrets.delete(username);
    if (phones.has(device)) phones.set(device, null);
  }

  unpinByToken(token, device) {
    for (const [username, own] of this.#tokens) {
      if (own === token) this.unpin(username, device);
    }
  }

  forget(username) {
    for (const table of [this.#tokens, this.#secrets, this.#phones]) table.delete(username);
  }

  open(request, now) {
    deleteOld(this.#open, now - REQUEST_LIFE);
    this.#open.set(request, now);
  }

  spend(request) {
    return this.#open.delete(request);
  }

  hasSeen(event) {
    return this.#seen.has(event);
  }

  see(event, now) {
    deleteOld(this.#seen, now - EVENT_LIFE);
    this.#seen.set(event, now);
  }
}

/** The part of a table that belongs to this user. */
function of(table, username) {
  return table.get(username) ?? new Map();
}

/** Entries stand in the order of their time, so the first one that stays ends the search. */
function deleteOld(table, before) {
  for (const [key, at] of table) {
    if (at > before) return;
    table.delete(key);
  }
}
