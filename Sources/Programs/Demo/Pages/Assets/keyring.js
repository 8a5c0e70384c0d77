// The stored data of this phone. IndexedDB can store keys that no script can read.

const stores = ["phones", "codes", "settings"];

const promised = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export class Keyring {
  static async open(name) {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      for (const store of stores) request.result.createObjectStore(store, { keyPath: "id" });
    };
    return new Keyring(await promised(request));
  }

  constructor(database) {
    this.database = database;
  }

  all(store) {
    return promised(this.database.transaction(store).objectStore(store).getAll());
  }

  get(store, id) {
    return promised(this.database.transaction(store).objectStore(store).get(id));
  }

  put(store, entry) {
    return this.#change(store, (objects) => objects.put(entry));
  }

  remove(store, id) {
    return this.#change(store, (objects) => objects.delete(id));
  }

  /** Deletes the data of another run of the demo. Each run has its own relay, which does not know these phones. */
  async keepOnlyFor(run) {
    if ((await this.get("settings", "run"))?.value === run) return;
    for (const store of stores) await this.#change(store, (objects) => objects.clear());
    await this.put("settings", { id: "run", value: run });
  }

  /** Changes a store; the data is written when this returns. */
  #change(store, body) {
    const transaction = this.database.transaction(store, "readwrite");
    body(transaction.objectStore(store));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
  }
}
