// Written by dev/embed-pages from Assets/signing.js. Do not edit.
extension PageFile {
    static let signingJS = PageFile(
        "signing.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The signed statements of a phone. Each kind has its own `typ` and its audience, so none can be used as another.

            import { encode, utf8 } from "./bytes.js";

            const curve = { name: "ECDSA", namedCurve: "P-256" };
            const json = (value) => encode(utf8(JSON.stringify(value)));
            const digest = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
            const seconds = (now) => Math.floor(now / 1000);

            /** Makes the key of one enrolment. No script can read it, only use it. */
            export const makeKey = () => crypto.subtle.generateKey(curve, false, ["sign"]);

            /** Makes the key to which the relay seals secrets for this phone. It signs nothing. */
            export const makeAgreementKey = () => crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);

            /** Imports the website's key from the activation. It can then be used, but not read. */
            export const holdWebsiteKey = (bytes) =>
              crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

            /** The public key as a JWK, with the members in the order of RFC 7638. */
            export async function jwkOf(publicKey) {
              const { crv, kty, x, y } = await crypto.subtle.exportKey("jwk", publicKey);
              return { crv, kty, x, y };
            }

            /** The thumbprint of a key (RFC 7638), which identifies a phone that has no device id yet. */
            export const thumbprint = async (jwk) => encode(await digest(utf8(JSON.stringify(jwk))));

            /** Signs a compact JWS. Web Crypto returns r and s of 32 bytes each, as JWS needs it. */
            async function sign(typ, who, claims, key) {
              const input = `${json({ alg: "ES256", typ, ...who })}.${json(claims)}`;
              return `${input}.${encode(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, utf8(input)))}`;
            }

            const audience = (phone) => `${phone.relay}#${phone.website}`;

            /** The statement that binds this key to one activation, and to a device token or to none. */
            export function enrolment(phone, code, now) {
              const claims = { v: 1, aud: audience(phone), id_token: phone.token, activation_code: code };
              if (phone.pushToken) claims.dev_token = phone.pushToken;
              if (phone.agreement) claims.agreement = phone.agreement;
              claims.iat = seconds(now);
              return sign("twoefay-enrol+jwt", { jwk: phone.jwk }, claims, phone.key);
            }

            /** The statement of the phone's key for the website only, under the key from the activation. */
            export async function binding(phone, websiteKey) {
              const claims = { v: 1, aud: audience(phone), id_token: phone.token, jwk: phone.jwk };
              if (phone.agreement) claims.agreement = phone.agreement;
              const input = `${json({ alg: "HS256", typ: "twoefay-binding+jwt" })}.${json(claims)}`;
              return `${input}.${encode(await crypto.subtle.sign("HMAC", websiteKey, utf8(input)))}`;
            }

            /**
             * The person's decision about exactly the bytes that were shown.
             *
             * `word` is approve, deny or fraud. `number` is the number that the person entered, if the request needs one.
             */
            export async function decision(phone, question, { word, number, uv = "none" }, now) {
              const claims = { v: 1, aud: audience(phone), challenge: question.challenge };
              // The website's nonce, if the request has one.
              if (question.context.request !== null) claims.request = question.context.request;
              claims.decision = word;
              if (word === "approve" && number !== undefined) claims.number = number;
              claims.context = encode(await digest(question.bytes));
              claims.nonce = question.nonce;
              claims.uv = uv;
              claims.iat = seconds(now);
              return sign("twoefay-decision+jwt", { kid: phone.device }, claims, phone.key);
            }

            /** The statement of a new device token, or of none if it is empty. */
            export function pushToken(phone, token, now) {
              const claims = { v: 1, aud: audience(phone), dev_token: token, iat: seconds(now) };
              return sign("twoefay-token+jwt", { kid: phone.device }, claims, phone.key);
            }

            /** The proof that the sender of one request holds the key (RFC 9449). `url` has neither query nor fragment. */
            export function dpop(phone, method, url, nonce, now, id = encode(crypto.getRandomValues(new Uint8Array(16)))) {
              const claims = { jti: id, htm: method, htu: url, iat: seconds(now) };
              if (nonce !== null) claims.nonce = nonce;
              return sign("dpop+jwt", { jwk: phone.jwk }, claims, phone.key);
            }

            """#)
}
