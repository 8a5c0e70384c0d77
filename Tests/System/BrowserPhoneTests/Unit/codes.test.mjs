// One-time codes, scrypt, the key derivation and the public keys of P-256, against their standards;
// and a secret that is sealed as the relay seals it.
import { test } from "node:test";
import assert from "node:assert/strict";
import { createECDH, scryptSync } from "node:crypto";
import { asset } from "./assets.mjs";

const { codeAt, codeOf, holdOTP, readOTPAuth, MalformedOTP } = await import(asset("otp.js"));
const { scrypt } = await import(asset("scrypt.js"));
const { keyPair, order } = await import(asset("p256.js"));
const { openSecret } = await import(asset("secret.js"));
const { encode, utf8 } = await import(asset("bytes.js"));

const ascii = (text) => new Uint8Array(Buffer.from(text, "ascii"));
const seed = (length) => ascii("1234567890".repeat(7).slice(0, length));

test("HOTP gives the values of RFC 4226, appendix D", async () => {
  const otp = await holdOTP({ secret: seed(20), algorithm: "SHA1", digits: 6 });
  const expected = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"];
  for (const [counter, code] of expected.entries()) assert.equal(await codeOf(counter, otp), code);
});

test("TOTP gives the values of RFC 6238, appendix B", async () => {
  const table = [
    [59, "94287082", "46119246", "90693936"], [1111111109, "07081804", "68084774", "25091201"],
    [1111111111, "14050471", "67062674", "99943326"], [1234567890, "89005924", "91819424", "93441116"],
    [2000000000, "69279037", "90698825", "38618901"], [20000000000, "65353130", "77737706", "47863826"],
  ];
  for (const [at, algorithm, length] of [[1, "SHA1", 20], [2, "SHA256", 32], [3, "SHA512", 64]]) {
    const otp = await holdOTP({ secret: seed(length), algorithm, digits: 8, period: 30 });
    assert.equal(otp.key.extractable, false);
    for (const row of table) assert.equal((await codeAt(row[0] * 1000, otp)).code, row[at]);
  }
  const otp = await holdOTP({ secret: seed(20), algorithm: "SHA1", digits: 8, period: 30 });
  assert.equal((await codeAt(59_000, otp)).left, 1);
});

test("otpauth URIs are read, or refused with the reason", () => {
  const totp = readOTPAuth("otpauth://totp/The%20Shop:zo%C3%AB?secret=JBSWY3DPEHPK3PXP&digits=8&period=60&algorithm=sha256");
  assert.deepEqual({ ...totp, secret: totp.secret.length }, {
    issuer: "The Shop", account: "zoë", secret: 10, algorithm: "SHA256", digits: 8, period: 60,
  });
  assert.equal(readOTPAuth("otpauth://hotp/x?secret=JBSWY3DPEHPK3PXP&counter=7").counter, 7);
  for (const text of [
    "otpauth://hotp/x?secret=JBSWY3DPEHPK3PXP", "otpauth://totp/x", "otpauth://totp/x?secret=1", "otpauth://totp/x?secret=",
    "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&secret=JBSWY3DPEHPK3PXP", "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&digits=9",
    "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&period=0", "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP&algorithm=MD5",
    "otpauth://totp/%zz?secret=JBSWY3DPEHPK3PXP", "https://example.com/",
  ]) assert.throws(() => readOTPAuth(text), MalformedOTP, text);
});

test("scrypt gives the value of RFC 7914, section 12, and those of OpenSSL", async () => {
  const found = await scrypt(ascii("pleaseletmein"), ascii("SodiumChloride"), { N: 16384, r: 8, length: 64 });
  assert.equal(Buffer.from(found).toString("hex"),
    "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887");
  for (const [N, r] of [[16, 1], [1024, 8]]) {
    const ours = await scrypt(ascii("0258"), seed(32), { N, r, length: 32 });
    assert.deepEqual(Buffer.from(ours), scryptSync("0258", seed(32), 32, { N, r, p: 1 }));
  }
});

test("public keys are those of OpenSSL, for small, large and random private keys", () => {
  const random = Array.from({ length: 20 }, () => BigInt(`0x${Buffer.from(crypto.getRandomValues(new Uint8Array(31))).toString("hex")}`) + 1n);
  for (const secret of [1n, 2n, 3n, 4n, 5n, order - 2n, order - 1n, ...random]) {
    const ecdh = createECDH("prime256v1");
    ecdh.setPrivateKey(secret.toString(16).padStart(64, "0"), "hex");
    const { x, y } = keyPair(secret);
    assert.equal(`04${[x, y].map((one) => Buffer.from(one, "base64url").toString("hex")).join("")}`, ecdh.getPublicKey("hex"));
  }
  for (const secret of [0n, order, order + 1n]) assert.throws(() => keyPair(secret));
});

const curve = { name: "ECDH", namedCurve: "P-256" };
const phone = { relay: "https://login.example.com:8080", website: "shop", device: "d1" };
const aud = "https://login.example.com:8080#shop";
const plain = { v: 1, secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", algorithm: "sha1", digits: 6, period: 30 };

/**
 * Seals a secret as RFC 7518, section 4.6 says, with a change to the header or to the plaintext.
 */
async function sealed(publicKey, change = {}, content = plain) {
  const own = await crypto.subtle.generateKey(curve, true, ["deriveBits"]);
  const { crv, kty, x, y } = await crypto.subtle.exportKey("jwk", own.publicKey);
  const header = {
    alg: "ECDH-ES", enc: "A256GCM", typ: "twoefay-secret+jwe", aud, kid: "d1", factor: "f1",
    apu: encode(utf8(aud)), apv: encode(utf8("d1.f1")), epk: { crv, kty, x, y }, ...change,
  };
  const shared = Buffer.from(await crypto.subtle.deriveBits({ ...curve, public: publicKey }, own.privateKey, 256));
  const number = (value) => { const bytes = Buffer.alloc(4); bytes.writeUInt32BE(value); return bytes; };
  const counted = (text) => [number(Buffer.byteLength(text)), Buffer.from(text)];
  const input = Buffer.concat([number(1), shared, ...counted("A256GCM"), ...counted(aud), ...counted("d1.f1"), number(256)]);
  const key = await crypto.subtle.importKey("raw", await crypto.subtle.digest("SHA-256", input), "AES-GCM", false, ["encrypt"]);
  const [first, iv] = [encode(utf8(JSON.stringify(header))), crypto.getRandomValues(new Uint8Array(12))];
  const both = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: utf8(first) }, key, utf8(JSON.stringify(content))));
  return [first, "", encode(iv), encode(both.slice(0, -16)), encode(both.slice(-16))].join(".");
}

test("a secret is opened by this phone for this factor only", async () => {
  const own = await crypto.subtle.generateKey(curve, false, ["deriveBits"]);
  const mine = { ...phone, agreementKey: own.privateKey };
  const opened = await openSecret(mine, "f1", await sealed(own.publicKey));
  assert.deepEqual({ ...opened, secret: Buffer.from(opened.secret).toString() }, { secret: "12345678901234567890", algorithm: "SHA1", digits: 6, period: 30 });
  const wrong = { typ: "JWE", aud: `${aud}x`, kid: "d2", factor: "f2", enc: "A128GCM", alg: "dir", apu: "AA", apv: "AA" };
  for (const [name, value] of Object.entries(wrong)) {
    await assert.rejects(openSecret(mine, "f1", await sealed(own.publicKey, { [name]: value })), undefined, name);
  }
  const other = await crypto.subtle.generateKey(curve, false, ["deriveBits"]);
  await assert.rejects(openSecret({ ...mine, agreementKey: other.privateKey }, "f1", await sealed(own.publicKey)));
  for (const change of [{ v: 2 }, { secret: "AA" }, { algorithm: "md5" }, { digits: 5 }, { period: 0 }]) {
    await assert.rejects(openSecret(mine, "f1", await sealed(own.publicKey, {}, { ...plain, ...change })));
  }
});
