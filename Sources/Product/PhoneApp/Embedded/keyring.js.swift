// Written by dev/embed-pages from Assets/keyring.js. Do not edit.
extension AppFile {
    static let keyringJS = AppFile(
        "keyring.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The stored data of this phone. IndexedDB can store keys that no script can read.
            //
            // Stores: `phones` (see enrolment.js), `codes` (see otp.js), `history` (the last decisions),
            // `settings` ({id, value}; the service worker reads `language`).

            const stores = ["phones", "codes", "history", "settings"];

            /** The decisions that are kept on this device. */
            export const mostDecisions = 30;

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
                const database = await promised(request);
                // Another window with a newer version of the app may upgrade it.
                database.onversionchange = () => database.close();
                return new Keyring(database);
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

              /**
               * Changes members of an entry in one transaction, so that two changes at the same time are both
               * kept. An entry that was removed meanwhile stays removed.
               */
              merge(store, id, values) {
                return this.#change(store, (objects) => {
                  const request = objects.get(id);
                  request.onsuccess = () => {
                    if (request.result) objects.put({ ...request.result, ...values });
                  };
                });
              }

              remove(store, id) {
                return this.#change(store, (objects) => objects.delete(id));
              }

              async setting(name) {
                return (await this.get("settings", name))?.value ?? null;
              }

              set(name, value) {
                return this.put("settings", { id: name, value });
              }

              /** Adds a decision to the history, and removes the oldest ones beyond the limit. */
              async record(decision) {
                await this.put("history", { id: crypto.randomUUID(), at: Date.now(), ...decision });
                const old = (await this.all("history")).sort((one, other) => other.at - one.at).slice(mostDecisions);
                for (const { id } of old) await this.remove("history", id);
              }

              async clear() {
                for (const store of stores) await this.#change(store, (objects) => objects.clear());
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

            """#)
}
