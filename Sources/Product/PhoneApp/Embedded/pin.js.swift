// Written by dev/embed-pages from Assets/pin.js. Do not edit.
extension AppFile {
    static let pinJS = AppFile(
        "pin.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The key of a PIN, as docs/phones/device-protocol.md specifies. Nothing by which a PIN could be
            // tested is stored or logged: neither the PIN, nor a key of it, nor a signature by such a key.

            import { utf8 } from "./bytes.js";
            import { keyPair, order } from "./p256.js";
            import { scrypt } from "./scrypt.js";
            import { signature, signingInput } from "./signing.js";

            export const isPIN = (text) => /^[0-9]{4,12}$/.test(text);
            export const isPUK = (text) => /^[0-9]{12}$/.test(text);

            /** Makes the secret of one enrolment, with which its PINs and PUKs are stretched. */
            export const makePINSecret = () => crypto.getRandomValues(new Uint8Array(32));

            /** Makes a PUK: 12 random digits, each as likely as the others. */
            export function makePUK() {
              let digits = "";
              while (digits.length < 12) {
                // 250 is the largest multiple of ten in a byte.
                for (const byte of crypto.getRandomValues(new Uint8Array(16))) if (byte < 250) digits += byte % 10;
              }
              return digits.slice(0, 12);
            }

            /**
             * Derives the key of the digits: {jwk, sign}. `purpose` is `pin` or `puk`. `sign` returns the
             * signature over the first two parts of a JWS.
             */
            export async function pinKey(digits, secret, purpose, pause) {
              const stretched = await scrypt(utf8(digits), secret, { N: 32768, r: 8, length: 32 }, pause);
              const material = await crypto.subtle.importKey("raw", stretched, "HKDF", false, ["deriveBits"]);
              const parameters = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info: utf8(`twoefay-${purpose}`) };
              const bytes = new Uint8Array(await crypto.subtle.deriveBits(parameters, material, 320));
              stretched.fill(0);
              let number = 0n;
              for (const byte of bytes) number = (number << 8n) | BigInt(byte);
              bytes.fill(0);
              const { d, ...jwk } = keyPair((number % (order - 1n)) + 1n);
              const key = await crypto.subtle.importKey("jwk", { ...jwk, d }, { name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
              return { jwk, sign: (jws) => signature(key, signingInput(jws)) };
            }

            """#)
}
