import Domain
import JSON
import Relay

/// The text of a push, for every push service. It names the website, the service and the origin of
/// the login, so that the user recognizes a foreign login at once. It never contains anything that
/// could be used to answer, nor the name of the user.
///
/// The app contains the sentences, in the user's language. Their keys are `TWOEFAY_LOGIN` followed
/// by `_SERVICE`, `_PLACE` and `_IP`, as far as these are known; the arguments come in the same
/// order. A minimal push has `TWOEFAY_LOGIN` alone, under the title `TWOEFAY_TITLE`.
enum PushText {
    static let category = "TWOEFAY_LOGIN"
    /// The maximum length of an argument. Texts are bounded where they enter the relay; this limit
    /// holds for the rest.
    private static let characters = 256

    static let minimal: JSONObject = ["title-loc-key": "TWOEFAY_TITLE", "loc-key": .string(category)]

    /// Returns the bytes that `write` makes from the full text, or from the minimal text if the
    /// full one is too long.
    static func bytes(for push: Push, limit: Int, _ write: (JSONObject) -> [UInt8]) -> [UInt8] {
        payload(for: push, write) { $0.count <= limit }
    }

    static func payload<Payload>(
        for push: Push, _ write: (JSONObject) -> Payload, fits: (Payload) -> Bool
    ) -> Payload {
        if push.detail == .full {
            let full = write(full(push))
            // Escapes can make a text six times as long; then the minimal text is used.
            if fits(full) { return full }
        }
        return write(minimal)
    }

    private static func full(_ push: Push) -> JSONObject {
        let known: [(suffix: String, text: String)] = [
            ("_SERVICE", push.service), ("_PLACE", push.place), ("_IP", push.ip),
        ].compactMap { suffix, text in
            guard let text, !text.isEmpty else { return nil }
            return (suffix, String(text.prefix(characters)))
        }
        return [
            "title": .string(String(push.website.prefix(characters))),
            "loc-key": .string(category + known.map(\.suffix).joined()),
            "loc-args": .array(known.map { .string($0.text) }),
        ]
    }
}
