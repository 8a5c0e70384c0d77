// conversation.mjs ORIGIN DIRECTORY TWOEFAY : a website's conversation with the relay, by fetch.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";

const [origin, directory, twoefay] = process.argv.slice(2);
// The class of fetch's own connections, which Node does not export; it is there after a first fetch.
await fetch("data:,");
const { constructor: Agent } = globalThis[Symbol.for("undici.globalDispatcher.1")];
const [ca, cert, key] = ["relay/ca.pem", "shop.pem", "shop.key"].map((name) => readFileSync(`${directory}/${name}`));
// Without HTTP/2, so that the conversation is over HTTP/1.1 with each version of Node.
const dispatcher = new Agent({ allowH2: false, connect: { ca, cert, key } });

async function call(method, path, body, fields = {}) {
  const headers = { ...(body && { "content-type": "application/json" }), ...fields };
  const answer = await fetch(origin + path, { method, headers, body: body && JSON.stringify(body), dispatcher });
  const text = await answer.text();
  return [answer.status, text ? JSON.parse(text) : {}];
}

function phone(...words) {
  const process = spawn(twoefay, ["phone", ...words, "--keys", `${directory}/phone`], { stdio: "ignore" });
  return once(process, "exit");
}

const [registered, user] = await call("POST", "/register", { username: "ada" });
console.log(registered);
await phone("enrol", user.activation.uri);
const [found, { state, devices }] = await call("GET", "/user/ada");
console.log(found, state, devices.length);
const [asked, login] = await call("POST", "/login", { username: "ada", request: "r-1" });
console.log(asked);
const challenge = { challenge: login.challenge };
const [held, first] = await call("POST", "/auth", challenge, { prefer: "wait=1" });
console.log(held, first.login);
const approval = phone("approve", "--challenge", login.challenge, "--number", login.number);
const [decided, answer] = await call("POST", "/auth", challenge, { prefer: "wait=60" });
console.log(decided, answer.login, answer.proof, answer.receipt.split(".").length - 1);
await approval;
const [listed, { secrets }] = await call("GET", "/webhook/secrets");
console.log(listed, secrets.length);
const [missing, { code }] = await call("GET", "/user/nobody");
console.log(missing, code);
console.log((await call("DELETE", "/user/ada"))[0]);
await dispatcher.close();
