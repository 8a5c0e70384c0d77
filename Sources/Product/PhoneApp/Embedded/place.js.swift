// Written by dev/embed-pages from Assets/place.js. Do not edit.
extension AppFile {
    static let placeJS = AppFile(
        "place.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The place of this phone, which some websites compare with the place of a login. It is rounded to
            // about 11 km, and goes out only with an approval, if the person agreed at this website.

            import { visible } from "./context.js";
            import { confirm } from "./elements.js";
            import { t } from "./texts.js";

            /** A place that is not known to within so many metres is not sent. */
            const widest = 50_000;

            /** The longest wait for a place, and the greatest age of one that is used again. */
            const wait = 10_000;
            const freshness = 300_000;

            /** Rounds to a tenth of a degree, as in `52.5,13.4`; null if the place is not known well enough. */
            export function coarse({ latitude, longitude, accuracy }) {
              const isOnEarth = Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180;
              if (!isOnEarth || !(accuracy >= 0 && accuracy <= widest)) return null;
              // Adding 0 makes 0 of -0.
              return [latitude, longitude].map((degrees) => (Math.round(degrees * 10) / 10 + 0).toFixed(1)).join(",");
            }

            /** Asks the browser for the place; null if it is denied, unknown, or takes too long. */
            export function locate(geolocation = globalThis.navigator?.geolocation) {
              return new Promise((resolve) => {
                if (!geolocation) return resolve(null);
                const options = { enableHighAccuracy: false, timeout: wait, maximumAge: freshness };
                return geolocation.getCurrentPosition(({ coords }) => resolve(coarse(coords)), () => resolve(null), options);
              });
            }

            /**
             * The place for an approval of this request, or null. Asks the person once for each website; a
             * question that is closed without an answer is asked again at the next request.
             */
            export async function placeFor(app, { phone: given, question }, tell) {
              if (!question.asksPlace) return null;
              const phone = app.current(given);
              let { sharesPlace } = phone;
              if (sharesPlace === undefined) {
                const website = visible(question.context.displayName);
                const agreed = await confirm({
                  title: t("placeTitle"), text: t("placeText", { website }), yes: t("placeYes"), no: t("placeNo"), kind: "primary",
                });
                if (agreed === null) return null;
                sharesPlace = agreed;
                await app.change(phone, { sharesPlace });
              }
              if (!sharesPlace) return null;
              tell(t("placeSought"));
              return locate();
            }

            """#)
}
