/** A process that calls a store when it is told to: see stores.test.js. */

import { closePools, KINDS } from "./databases.js";

const [kind, directory] = process.argv.slice(2);
const store = KINDS[kind].make(directory);

process.once("message", async (calls) => {
  const results = [];
  for (const [method, ...values] of calls) {
    if (method === "pin") values.push(Buffer.from(values.pop(), "base64url"));
    results.push(await store[method](...values));
  }
  process.send(results);
  await closePools();
  process.disconnect();
});
process.send("ready");
