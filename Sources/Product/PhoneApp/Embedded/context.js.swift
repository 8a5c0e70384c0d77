// Written by dev/embed-pages from Assets/context.js. Do not edit.
extension AppFile {
    static let contextJS = AppFile(
        "context.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // A request as the relay lists it. The displayed context is read from exactly the bytes that the
            // answer signs.

            import { decode, moment, readObject } from "./bytes.js";

            /** The reason why nothing may be signed. `challenge` is null if it could not be read. */
            export class Refused extends Error {
              constructor(challenge, reason) {
                super(reason);
                this.challenge = challenge;
              }
            }

            /** The form of the ids that the relay makes. */
            export const isID = (text) => typeof text === "string" && /^[A-Za-z0-9_-]{1,128}$/.test(text);

            /** Reads an entry of `pending` for the phone of that website; throws `Refused`. */
            export function readQuestion(entry, website, now) {
              if (entry === null || typeof entry !== "object" || !isID(entry.challenge)) {
                throw new Refused(null, "it has no challenge");
              }
              const { challenge, nonce } = entry;
              const [bytes, expiresAt] = [decode(entry.context), moment(entry.expires_at)];
              if (typeof nonce !== "string" || bytes === null || expiresAt === null) {
                throw new Refused(challenge, "nonce, context or expires_at is missing");
              }
              let context;
              try {
                context = readContext(bytes);
              } catch (error) {
                throw new Refused(challenge, `its context is malformed: ${error.message}`);
              }
              if (context.website !== website) {
                throw new Refused(challenge, "it belongs to another website than the one this phone is bound to");
              }
              // The relay's clock decides, not the phone's.
              return {
                challenge, nonce, bytes, context, timeLeft: expiresAt - now, demands: readDemands(entry.demands),
                asksPlace: entry.asks_place === true,
              };
            }

            /**
             * The members of `demands` that keep no browser from approving: nothing attests these facts of it.
             */
            const harmless = ["unmet", "verified_boot", "patch_level", "os_version", "app_version", "screen_lock"];

            /**
             * The website's demands: {pin, needsOwner, missing, isStated}. `missing` names those that a browser
             * cannot meet, since it can neither attest nor report anything. `needsOwner`: the approval needs a
             * check of the owner.
             */
            export function readDemands(demands) {
              if (demands === null || typeof demands !== "object" || Array.isArray(demands)) {
                return { pin: null, needsOwner: false, missing: [], isStated: false };
              }
              const { pin = null, max_uv_age: age, ...rest } = demands;
              const unmet = Array.isArray(demands.unmet) ? demands.unmet.filter((one) => typeof one === "string") : [];
              const named = Object.entries(rest)
                .filter(([name, value]) => !harmless.includes(name) && value !== "recorded" && value !== false)
                .map(([name]) => name);
              return {
                pin: ["sign", "set", "locked"].includes(pin) ? pin : null,
                needsOwner: age !== undefined,
                missing: [...new Set([...named, ...unmet])],
                isStated: true,
              };
            }

            /** Reads the context; throws if this phone cannot show it. Unknown members are ignored. */
            export function readContext(bytes) {
              const object = readObject(bytes);
              if (object.v !== 1) throw new Error("this phone does not know its version; a newer one may");
              const text = (name) => checked(object[name] ?? null, name);
              const needed = (name) => {
                const value = text(name);
                if (value === null) throw new Error(`${name} is missing`);
                return value;
              };
              const time = (name) => {
                const value = moment(object[name]);
                if (value === null) throw new Error(`${name} is not a time`);
                return value;
              };
              const digits = object.number_digits;
              if (!Number.isInteger(digits) || digits < 0 || digits > 9) throw new Error("number_digits is missing");
              return {
                website: needed("website"),
                displayName: needed("display_name"),
                username: needed("username"),
                service: text("service"),
                action: text("action"),
                details: readDetails(object.details ?? []),
                ip: text("ip"),
                place: text("place"),
                userAgent: text("user_agent"),
                device: text("device"),
                /** The website's nonce, which is not displayed. */
                request: text("request"),
                numberDigits: digits,
                createdAt: time("created_at"),
                expiresAt: time("expires_at"),
              };
            }

            function readDetails(list) {
              if (!Array.isArray(list)) throw new Error("details is not a list");
              return list.map((entry) => {
                const [label, value] = [checked(entry?.label ?? null, "details"), checked(entry?.value ?? null, "details")];
                if (label === null || value === null) throw new Error("a detail has no label or no value");
                return { label, value };
              });
            }

            /**
             * Control characters, text direction marks and invisible characters: see
             * docs/phones/device-protocol.md.
             */
            const hidden = new RegExp(
              "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f" +
                "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb" +
                "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]",
              "u",
            );

            /** Returns a text that has no hidden characters, or null; throws for anything else. */
            export function checked(value, name) {
              if (value === null) return null;
              if (typeof value !== "string" || /\p{Cs}/u.test(value)) throw new Error(`${name} is not a text`);
              if (hidden.test(value)) {
                throw new Error(`${name} contains a character that cannot be shown`);
              }
              return value;
            }

            /** The same for a text of several lines: line breaks are allowed. */
            export const visibleLines = (text) => text.trim().split(/\r?\n/).map(visible).join("\n");

            /**
             * Makes a text of others safe to display: invisible characters appear by number, such as
             * `\u{200b}`.
             */
            export function visible(text) {
              return text.replace(
                /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
                (character) => `\\u{${character.codePointAt(0).toString(16)}}`,
              );
            }

            """#)
}
