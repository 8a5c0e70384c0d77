// Written by dev/embed-pages from Assets/signing.js. Do not edit.
extension PageFile {
    static let signingJS = PageFile(
        "signing.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // What a phone signs. Each kind has its own `typ`, so that none can stand for another, and names whom it is for.

            import { encode, utf8 } from "./bytes.js";

            const curve = { name: "ECDSA", namedCurve: "P-256" };
            const json = (value) => encode(utf8(JSON.stringify(value)));
            const digest = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
            const seconds = (now) => Math.floor(now / 1000);

            /** One for each enrolment. No script can read it, this one neither: it can only be used. */
            export const makeKey = () => crypto.subtle.generateKey(curve, false, ["sign"]);

            /** The website's own key out of the activation, of which only its use is left. */
            export const holdWebsiteKey = (bytes) =>
              crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

            /** As RFC 7638 orders the members. */
            export async function jwkOf(publicKey) {
              const { crv, kty, x, y } = await crypto.subtle.exportKey("jwk", publicKey);
              return { crv, kty, x, y };
            }

            /** What names this phone where it has no device yet (RFC 7638). */
            export const thumbprint = async (jwk) => encode(await digest(utf8(JSON.stringify(jwk))));

            /** A compact JWS: r and s of 32 bytes each, which is what Web Crypto gives. */
            async function sign(typ, who, claims, key) {
              const input = `${json({ alg: "ES256", typ, ...who })}.${json(claims)}`;
              return `${input}.${encode(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, utf8(input)))}`;
            }

            const audience = (phone) => `${phone.relay}#${phone.website}`;

            /** I hold this key, and bind it to this activation alone, and to this push token or to none. */
            export function enrolment(phone, code, now) {
              const claims = { v: 1, aud: audience(phone), id_token: phone.token, activation_code: code };
              if (phone.pushToken) claims.dev_token = phone.pushToken;
              claims.iat = seconds(now);
              return sign("twoefay-enrol+jwt", { jwk: phone.jwk }, claims, phone.key);
            }

            /** For the website alone, under the key that it put into the activation: this is the phone's key. */
            export async function binding(phone, websiteKey) {
              const claims = { v: 1, aud: audience(phone), id_token: phone.token, jwk: phone.jwk };
              const input = `${json({ alg: "HS256", typ: "twoefay-binding+jwt" })}.${json(claims)}`;
              return `${input}.${encode(await crypto.subtle.sign("HMAC", websiteKey, utf8(input)))}`;
            }

            /**
             * What the person decided about what was shown, byte for byte.
             *
             * `word` is approve, deny or fraud; `number` what the person read on the website and typed, where one is asked for.
             */
            export async function decision(phone, question, { word, number, uv = "none" }, now) {
              const claims = { v: 1, aud: audience(phone), challenge: question.challenge };
              // The website's nonce: what it did not say is left out here too.
              if (question.context.request !== null) claims.request = question.context.request;
              claims.decision = word;
              if (word === "approve" && number !== undefined) claims.number = number;
              claims.context = encode(await digest(question.bytes));
              claims.nonce = question.nonce;
              claims.uv = uv;
              claims.iat = seconds(now);
              return sign("twoefay-decision+jwt", { kid: phone.device }, claims, phone.key);
            }

            /** The push service finds me there from now on; nowhere, where it is empty. */
            export function pushToken(phone, token, now) {
              const claims = { v: 1, aud: audience(phone), dev_token: token, iat: seconds(now) };
              return sign("twoefay-token+jwt", { kid: phone.device }, claims, phone.key);
            }

            /** The sender of this one request holds the key (RFC 9449). `url` has neither query nor fragment. */
            export function dpop(phone, method, url, nonce, now, id = encode(crypto.getRandomValues(new Uint8Array(16)))) {
              const claims = { jti: id, htm: method, htu: url, iat: seconds(now) };
              if (nonce !== null) claims.nonce = nonce;
              return sign("dpop+jwt", { jwk: phone.jwk }, claims, phone.key);
            }

            """#)
}
