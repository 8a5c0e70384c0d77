/**
 * HTTP answers of the relay, and how they become objects or errors. An answer has `status`,
 * `headers` with names in lower case, and `body`, its bytes.
 */

import { BY_CODE, ID, OddAnswer, Refused } from "./errors.js";
import { isObject, readObject, reading } from "./jsontext.js";

/** The object of an answer with one of these statuses. Everything else is an error. */
export function read(answer, statuses) {
  const { status, body } = answer;
  if (!statuses.includes(status)) throw refusal(answer);
  if (status === 204) return {};
  if (kind(answer) !== "application/json") throw new OddAnswer("the answer is not JSON", status);
  return reading(
    () => readObject(body),
    (fault) => new OddAnswer(`the answer is no object of JSON: ${fault.message}`, status),
  );
}

/** The refusal, if it is one of a relay. What a proxy answers is no statement of the relay. */
function refusal(answer) {
  const { status, headers, body } = answer;
  const odd = new OddAnswer("the answer is not from a relay", status);
  if (kind(answer) !== "application/problem+json") return odd;
  const problem = reading(() => readObject(body), () => odd);
  const { code } = problem;
  if (typeof code !== "string" || !code || problem.status !== status || status < 400) return odd;
  const type = BY_CODE.get(code) ?? Refused;
  return [0, status].includes(type.codeStatus) ? new type(problem, status, headers) : odd;
}

function kind({ headers }) {
  return String(headers["content-type"] ?? "").split(";", 1)[0].trim().toLowerCase();
}

export function text(value, name) {
  if (typeof value[name] !== "string") throw new OddAnswer(`${name} is no text`);
  return value[name];
}

/** An id of the relay: it can stand in a path, and fits into every store. */
export function identity(value, name) {
  if (!ID.test(text(value, name))) throw new OddAnswer(`${name} is no id`);
  return value[name];
}

export function optional(value, name) {
  return value[name] === undefined || value[name] === null ? null : text(value, name);
}

export function objects(value, name) {
  const list = value[name];
  if (!Array.isArray(list) || !list.every(isObject)) {
    throw new OddAnswer(`${name} is no list of objects`);
  }
  return list;
}
