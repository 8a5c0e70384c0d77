// Written by dev/embed-pages from Assets/bytes.js. Do not edit.
extension PageFile {
    static let bytesJS = PageFile(
        "bytes.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Bytes and texts, as the device protocol writes them. Every reader is strict: one text stands for one value.

            const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

            export const utf8 = (text) => new TextEncoder().encode(text);

            /** base64url without padding (RFC 4648, section 5). */
            export function encode(bytes) {
              let text = "";
              for (const byte of new Uint8Array(bytes)) text += String.fromCharCode(byte);
              return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
            }

            /** Null for a foreign character, padding, an impossible length, or bits left over. */
            export function decode(text) {
              if (typeof text !== "string" || text.length % 4 === 1) return null;
              const bytes = new Uint8Array((text.length * 3) >> 2);
              let [bits, held, at] = [0, 0, 0];
              for (const letter of text) {
                const value = letters.indexOf(letter);
                if (value < 0) return null;
                bits = (bits << 6) | value;
                held += 6;
                if (held < 8) continue;
                held -= 8;
                bytes[at] = (bits >> held) & 0xff;
                at += 1;
                bits &= (1 << held) - 1;
              }
              return bits === 0 ? bytes : null;
            }

            /** Base32 as authenticators are given it: without padding, in whichever case. Null for anything else. */
            export function decodeBase32(text) {
              const plain = text.toUpperCase().replace(/=+$/, "");
              if (!/^[A-Z2-7]+$/.test(plain) || [1, 3, 6].includes(plain.length % 8)) return null;
              const bytes = [];
              let [bits, held] = [0, 0];
              for (const letter of plain) {
                bits = (bits << 5) | "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter);
                held += 5;
                if (held < 8) continue;
                held -= 8;
                bytes.push(bits >> held);
                bits &= (1 << held) - 1;
              }
              return bits === 0 ? new Uint8Array(bytes) : null;
            }

            /** Throws unless the bytes are UTF-8. */
            export const text = (bytes) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

            /** Percent-encoded UTF-8; null where a % stands alone, or the bytes are no text. A + is a +. */
            export function unescape(escaped) {
              try {
                return decodeURIComponent(escaped);
              } catch {
                return null;
              }
            }

            /**
             * The object in these bytes; throws where it is none, or could be read in two ways.
             *
             * JSON.parse keeps the last of two members of one name: what it dropped is missed when the value is written again. The
             * relay writes no spaces and escapes only what JSON demands.
             */
            export function readObject(bytes) {
              const written = text(bytes);
              const value = JSON.parse(written);
              if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("it is no JSON object");
              if (JSON.stringify(value) !== written) throw new Error("it can be read in two ways");
              return value;
            }

            /** RFC 3339 in UTC, as milliseconds since 1970; null for anything else. */
            export function moment(text) {
              if (typeof text !== "string" || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(text)) return null;
              const at = Date.parse(text);
              // 30 February is read as 2 March by some.
              return Number.isNaN(at) || new Date(at).toISOString().slice(0, 19) !== text.slice(0, 19) ? null : at;
            }

            """#)
}
