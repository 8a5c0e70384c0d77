// Written by dev/embed-pages from Assets/clock.js. Do not edit.
extension AppFile {
    static let clockJS = AppFile(
        "clock.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The relay's time. A page does not see the certificate of the connection, so it cannot verify the
            // signature of the relay's statements: it relies on the browser, which has checked the certificate.

            import { decodeObject, encode, moment } from "./bytes.js";
            import { unverifiedClaims } from "./signing.js";

            const longestRoundTrip = 10_000;
            const hour = 3_600_000;

            /** A clock that is wrong by less than this needs no correction. */
            const tolerance = 30_000;

            /**
             * Asks the relay for its time, and returns the offset of this phone's clock in milliseconds.
             *
             * Throws if the answer is not for this request. `fetched` sends the request: (path, {fields}).
             */
            export async function askOffset(phone, fetched, clock = { now: Date.now, ticks: () => performance.now() }) {
              const nonce = encode(crypto.getRandomValues(new Uint8Array(24)));
              const [wall, start] = [clock.now(), clock.ticks()];
              const answer = await fetched("/time", { method: "GET", fields: { nonce } });
              const took = clock.ticks() - start;
              const claims = unverifiedClaims(answer.body?.time, "twoefay-time+jwt", decodeObject);
              const time = moment(claims?.time);
              if (answer.status !== 200 || claims?.aud !== phone.relay || claims.nonce !== nonce || time === null) {
                throw new Error("the relay's time is not an answer to this request");
              }
              if (took > longestRoundTrip) throw new Error("the relay's time took too long");
              const offset = Math.round(time - (wall + took / 2));
              return Math.abs(offset) < tolerance ? 0 : offset;
            }

            /**
             * Whether the date of an answer differs so much from this clock that the offset must be asked for.
             */
            export function isFarFrom(date, now) {
              const told = Date.parse(date ?? "");
              return !Number.isNaN(told) && Math.abs(told - now) > hour;
            }

            """#)
}
