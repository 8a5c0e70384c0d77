// Calls functions of the page. The file contains a JSON list of calls. The driver prints one line
// of JSON for each.
import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
const { readActivation } = await import("./activation.js");
const { readQuestion, visible } = await import("./context.js");
const { codeAt, holdOTP, readOTPAuth } = await import("./totp.js");
const { decode } = await import("./bytes.js");
const signing = await import("./signing.js");

async function phoneOf({ key, ...rest }) {
  const { d, ...jwk } = key;
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  return { ...rest, jwk, key: await crypto.subtle.importKey("jwk", { ...jwk, d }, algorithm, false, ["sign"]) };
}

const calls = {
  activation: ({ uri }) => {
    const { k, ...rest } = readActivation(uri);
    return { ...rest, k: k && [...k] };
  },
  question: ({ entry, website, now }) => readQuestion(entry, website, Date.parse(now)).context,
  visible: ({ text }) => visible(text),
  thumbprint: ({ jwk }) => signing.thumbprint(jwk),
  enrolment: async ({ phone, code, now }) => signing.enrolment(await phoneOf(phone), code, now),
  binding: async ({ phone, k }) => signing.binding(await phoneOf(phone), await signing.holdWebsiteKey(decode(k))),
  decision: async ({ phone, entry, decision, now }) =>
    signing.decision(await phoneOf(phone), readQuestion(entry, phone.website, 0), decision, now),
  pushToken: async ({ phone, token, now }) => signing.pushToken(await phoneOf(phone), token, now),
  dpop: async ({ phone, method, url, nonce, now, id }) => signing.dpop(await phoneOf(phone), method, url, nonce, now, id),
  otp: async ({ uri, now }) => codeAt(now, await holdOTP(readOTPAuth(uri))),
  otpauth: ({ uri }) => {
    const { secret, ...rest } = readOTPAuth(uri);
    return { ...rest, secret: [...secret] };
  },
};

for (const { call, ...given } of JSON.parse(readFileSync(process.argv[2], "utf8"))) {
  try {
    console.log(JSON.stringify({ value: await calls[call](given) }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
