// Written by dev/embed-pages from Assets/environment.js. Do not edit.
extension AppFile {
    static let environmentJS = AppFile(
        "environment.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The surroundings of the app: the origin of this page, its version, and the way to the relay. The
            // demo gives the app other surroundings; the app itself does not know about it.

            import { direct } from "./calls.js";

            /** The surroundings of the product. `language` returns the language that the person chose. */
            export async function productEnvironment(language) {
              const response = await fetch("/phone/config.json");
              const config = await response.json();
              return {
                config,
                origin: location.origin,
                database: "twoefay-phone",
                /** Sends the requests of one phone; see `RelayLine`. */
                carry: (phone) => direct(phone.at, language),
                /** Whether pushes come by the service worker. */
                hasPushes: true,
                platform: "web",
              };
            }

            """#)
}
