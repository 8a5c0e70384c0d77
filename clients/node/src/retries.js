/**
 * One call to the relay with its repetitions.
 *
 * A call has `method`, `path`, and perhaps `body`, `headers`, and `hold`: the seconds for which the
 * relay may hold the request. The `world` is what differs between a real client and one under test.
 */

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { read } from "./answers.js";
import { Conflict, OddAnswer, Unavailable, Unreachable } from "./errors.js";

/** Seconds for which a call is repeated after its first failure. */
const PATIENCE = 3;

/** Clocks in seconds, randomness, pauses, and `exchange`: one request with its answer. */
export function realWorld(exchange) {
  return {
    clock: () => Date.now() / 1000,
    monotonic: () => performance.now() / 1000,
    random: randomBytes,
    pause: (seconds) => sleep(seconds * 1000),
    exchange,
  };
}

/**
 * Sends a call, and repeats it while that may help and the patience lasts.
 *
 * The patience counts from the first failure: a held request may be lost after a minute. A
 * repetition has no second effect: a POST keeps its Idempotency-Key, and a deleted object stays
 * deleted. 429 is never repeated, since it would sleep in the visitor's request.
 */
export async function send(world, call, ...statuses) {
  JSON.stringify(call.body); // a wrong argument is none of the relay's faults: it throws here
  const headers = { ...call.headers };
  // /auth changes nothing, and takes no key: a stored answer would say `wait` for ever.
  if (call.method === "POST" && call.path !== "/auth") {
    headers["idempotency-key"] = world.random(16).toString("hex");
  }
  let end = Infinity;
  for (let pause = 0.1; ; pause *= 2) {
    try {
      return read(await world.exchange({ ...call, headers }), statuses);
    } catch (error) {
      // An answer with a right status was read, and would be the same again.
      if (!mayPass(error, call.method)) throw error;
      end = Math.min(end, world.monotonic() + PATIENCE);
      const wait = Math.max(pause * (1 + world.random(1)[0] / 512), error.retryAfter ?? 0);
      if (world.monotonic() + wait > end) throw error;
      await world.pause(wait);
    }
  }
}

/** Whether the same call may succeed soon, and may be repeated. */
export function mayPass(error, method = "POST") {
  if (error instanceof Unavailable) return true;
  if (error instanceof Conflict) return error.retryAfter !== null; // the first attempt still runs
  // Either may have been done, and a PATCH must not be done twice.
  if (error instanceof Unreachable) return method !== "PATCH";
  // A proxy that got no answer from the relay.
  return error instanceof OddAnswer && [502, 503, 504].includes(error.status) && method !== "PATCH";
}
