// Written by dev/embed-pages from Assets/signing.js. Do not edit.
extension AppFile {
    static let signingJS = AppFile(
        "signing.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The signed statements of a phone. Each kind has its own `typ` and its audience, so none can be
            // used as another.

            import { encode, utf8 } from "./bytes.js";

            const curve = { name: "ECDSA", namedCurve: "P-256" };
            const json = (value) => encode(utf8(JSON.stringify(value)));
            export const digest = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
            const seconds = (now) => Math.floor(now / 1000);

            /** Makes the key of one enrolment. No script can read it, only use it. */
            export const makeKey = () => crypto.subtle.generateKey(curve, false, ["sign"]);

            /** Makes the key to which the relay seals secrets for this phone. It signs nothing. */
            export const makeAgreementKey = () =>
              crypto.subtle.generateKey({ name: "ECDH", namedCurve: "P-256" }, false, ["deriveBits"]);

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

            /** Signs a text. Web Crypto returns r and s of 32 bytes each, as JWS needs it. */
            export const signature = async (key, text) =>
              encode(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, utf8(text)));

            async function sign(typ, who, claims, key) {
              const input = `${json({ alg: "ES256", typ, ...who })}.${json(claims)}`;
              return `${input}.${await signature(key, input)}`;
            }

            /** The first two parts of a JWS, which its signature covers. */
            export const signingInput = (jws) => jws.slice(0, jws.lastIndexOf("."));

            export const audience = (phone) => `${phone.relay}#${phone.website}`;

            /** Statements of a bound phone, which its device id names. */
            const state = (typ, phone, claims) =>
              sign(typ, { kid: phone.device }, { v: 1, aud: audience(phone), ...claims }, phone.key);

            /** The claims of a phone in a browser: the origin of its app and perhaps its passkey. */
            const webClaims = ({ app, passkey }) => ({
              ...(app ? { app } : {}),
              ...(app && passkey ? { webauthn: { rp: passkey.rp, id: passkey.id, jwk: passkey.jwk } } : {}),
            });

            /** The statement that binds this key to one activation, and to a device token or to none. */
            export function enrolment(phone, code, now) {
              const claims = { v: 1, aud: audience(phone), id_token: phone.token, activation_code: code };
              if (phone.pushToken) claims.dev_token = phone.pushToken;
              if (phone.agreement) claims.agreement = phone.agreement;
              Object.assign(claims, webClaims(phone), { iat: seconds(now) });
              return sign("twoefay-enrol+jwt", { jwk: phone.jwk }, claims, phone.key);
            }

            /** The statement of the phone's key for the website only, under the key from the activation. */
            export async function binding(phone, websiteKey) {
              const claims = { v: 1, aud: audience(phone), id_token: phone.token, jwk: phone.jwk };
              if (phone.agreement) claims.agreement = phone.agreement;
              Object.assign(claims, webClaims(phone));
              const input = `${json({ alg: "HS256", typ: "twoefay-binding+jwt" })}.${json(claims)}`;
              return `${input}.${encode(await crypto.subtle.sign("HMAC", websiteKey, utf8(input)))}`;
            }

            /**
             * The person's decision about exactly the bytes that were shown.
             *
             * `word` is approve, deny or fraud. `number` is the number that the person entered, if the request
             * needs one. `uv` names the check of the owner that follows the signature. `posture` is sent only
             * if the request has demands, and `place` only if it asks for the place and the person agreed.
             */
            export async function decision(phone, question, { word, number, uv = "none", uvAge, place, posture }, now) {
              const claims = { challenge: question.challenge };
              // The website's nonce, if the request has one.
              if (question.context.request !== null) claims.request = question.context.request;
              claims.decision = word;
              if (word === "approve" && number !== undefined) claims.number = number;
              claims.context = encode(await digest(question.bytes));
              claims.nonce = question.nonce;
              claims.uv = uv;
              if (uvAge !== undefined) claims.uv_age = uvAge;
              if (question.asksPlace && place) claims.place = place;
              if (posture !== undefined) claims.posture = posture;
              claims.iat = seconds(now);
              return state("twoefay-decision+jwt", phone, claims);
            }

            /** The statement of a new device token, or of none if it is empty. */
            export const pushToken = (phone, token, now) =>
              state("twoefay-token+jwt", phone, { dev_token: token, iat: seconds(now) });

            /**
             * The statement of a change of the PIN. `change` has {change, version, pin, puk?, unlock_code?}.
             */
            export const pinChange = (phone, change, now) =>
              state("twoefay-pin+jwt", phone, { ...change, iat: seconds(now) });

            /** The request for the secret of this phone's codes. */
            export const secretRequest = (phone, now) =>
              state("twoefay-secret+jwt", phone, { agreement: phone.agreement, iat: seconds(now) });

            /** The report of the phone's system and state. */
            export const status = (phone, report, now) =>
              state("twoefay-status+jwt", phone, { iat: seconds(now), ...report });

            /** The statement that the phone leaves, or only asks whether it is bound. */
            export const goodbye = (phone, { nonce, leaves }, now) =>
              state("twoefay-goodbye+jwt", phone, { nonce, leaves, iat: seconds(now) });

            /**
             * The proof that the sender of one request holds the key (RFC 9449). `url` has neither query nor
             * fragment.
             */
            export function dpop(phone, method, url, nonce, now, id = encode(crypto.getRandomValues(new Uint8Array(16)))) {
              const claims = { jti: id, htm: method, htu: url, iat: seconds(now) };
              if (nonce !== null) claims.nonce = nonce;
              return sign("dpop+jwt", { jwk: phone.jwk }, claims, phone.key);
            }

            /** Reads the claims of a JWS without its signature; null if it is not one of that `typ`. */
            export function unverifiedClaims(jws, typ, decodeObject) {
              const parts = typeof jws === "string" ? jws.split(".") : [];
              if (parts.length !== 3) return null;
              const [header, claims] = [decodeObject(parts[0]), decodeObject(parts[1])];
              return header?.typ === typ && claims?.v === 1 ? claims : null;
            }

            """#)
}
