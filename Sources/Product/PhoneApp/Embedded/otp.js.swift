// Written by dev/embed-pages from Assets/otp.js. Do not edit.
extension AppFile {
    static let otpJS = AppFile(
        "otp.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // One-time codes: by time (TOTP, RFC 6238) and by counter (HOTP, RFC 4226), and the URI that adds
            // one to an authenticator.

            import { decodeBase32, unescape } from "./bytes.js";

            const hashes = { SHA1: "SHA-1", SHA256: "SHA-256", SHA512: "SHA-512" };

            export class MalformedOTP extends Error {}

            /**
             * Reads `otpauth://totp/ISSUER:ACCOUNT?secret=…&issuer=…&algorithm=…&digits=…&period=…`, or
             * `otpauth://hotp/…` with `counter` in place of `period`; throws `MalformedOTP`.
             */
            export function readOTPAuth(text) {
              const parts = /^otpauth:\/\/(totp|hotp)\/([^?#]*)\?([^#]*)$/.exec(text);
              const label = parts && unescape(parts[2]);
              if (!parts || label === null) throw new MalformedOTP("it does not begin with otpauth://totp/ or otpauth://hotp/");
              const found = new Map();
              for (const pair of parts[3].split("&")) {
                const [name, ...rest] = pair.split("=");
                const value = unescape(rest.join("="));
                if (value === null || found.has(name)) throw new MalformedOTP(`${name} occurs twice, or is not percent-encoded text`);
                found.set(name, value);
              }
              const secret = decodeBase32(found.get("secret") ?? "");
              if (!secret) throw new MalformedOTP("secret is missing, or is not Base32");
              const algorithm = (found.get("algorithm") ?? "SHA1").toUpperCase();
              if (!Object.hasOwn(hashes, algorithm)) throw new MalformedOTP("algorithm must be SHA1, SHA256 or SHA512");
              const at = label.indexOf(":");
              const kind = parts[1] === "totp"
                ? { period: whole(found.get("period") ?? "30", "period", 1, 3600) }
                : { counter: whole(found.get("counter") ?? "", "counter", 0, Number.MAX_SAFE_INTEGER) };
              return {
                issuer: found.get("issuer") ?? (at < 0 ? "" : label.slice(0, at)),
                account: label.slice(at + 1).trim(),
                secret,
                algorithm,
                digits: whole(found.get("digits") ?? "6", "digits", 6, 8),
                ...kind,
              };
            }

            function whole(text, name, least, most) {
              const value = /^\d{1,16}$/.test(text) ? Number(text) : -1;
              if (value < least || value > most) throw new MalformedOTP(`${name} must be a number from ${least} to ${most}`);
              return value;
            }

            /** Replaces the secret by a key that can be used but not read: {…, key} instead of {…, secret}. */
            export async function holdOTP({ secret, ...rest }) {
              const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: hashes[rest.algorithm] }, false, ["sign"]);
              return { ...rest, key };
            }

            /** The code of a counter (RFC 4226). */
            export async function codeOf(counter, { key, digits }) {
              const message = new DataView(new ArrayBuffer(8));
              message.setBigUint64(0, BigInt(counter));
              const mac = new DataView(await crypto.subtle.sign("HMAC", key, message.buffer));
              // RFC 4226, section 5.3: the last four bits of the digest are the offset of the number.
              const number = mac.getUint32(mac.getUint8(mac.byteLength - 1) & 15) & 0x7fffffff;
              return String(number % 10 ** digits).padStart(digits, "0");
            }

            /** The code at a time (milliseconds since 1970), and its remaining seconds. */
            export async function codeAt(now, otp) {
              const seconds = Math.max(0, Math.floor(now / 1000));
              const code = await codeOf(Math.floor(seconds / otp.period), otp);
              return { code, left: otp.period - (seconds % otp.period) };
            }

            """#)
}
