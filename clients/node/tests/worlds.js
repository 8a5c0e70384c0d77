/** A client whose relay is a function, for tests without a network. */

import { randomBytes } from "node:crypto";
import { Client } from "../src/client.js";
import { makePolicy } from "../src/policy.js";
import { MemoryStore } from "../src/index.js";

export const NOW = 1_795_334_400;
export const JSON_TYPE = { "content-type": "application/json" };
export const LOGIN = { login: "verified", challenge: "c".repeat(32), number: "47", factor: "push" };

/** A clock that only moves when a pause moves it. */
export class Clock {
  pauses = [];

  constructor(now = NOW) {
    this.now = now;
  }

  pause = async (seconds) => {
    this.pauses.push(seconds);
    this.now += seconds;
  };
}

export function client(exchange, options = {}) {
  const { store = new MemoryStore(), clock = new Clock(), ...others } = options;
  const { random = randomBytes, ...policy } = others;
  const time = () => clock.now;
  const world = {
    clock: time, monotonic: time, pause: clock.pause, random,
    exchange: async (call) => exchange(call),
  };
  const settings = { origin: "https://login.example.com:8080", website: "shop", ...policy };
  return new Client(makePolicy(settings), store, world);
}

export function reply(status, headers, body) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { status, headers, body: Buffer.from(text) };
}

export function problem(code, status, headers = {}, more = {}) {
  const body = { type: `urn:twoefay:problem:${code}`, title: code, status, code, ...more };
  return reply(status, { "content-type": "application/problem+json", ...headers }, body);
}

/** A relay that answers one after the other, and notes the calls. */
export function script(...answers) {
  const calls = [];
  const exchange = (call) => {
    calls.push(call);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return Buffer.isBuffer(answer?.body) ? answer : reply(201, JSON_TYPE, answer);
  };
  const keys = () => calls.map((call) => call.headers["idempotency-key"]);
  return Object.assign(exchange, { calls, keys });
}
