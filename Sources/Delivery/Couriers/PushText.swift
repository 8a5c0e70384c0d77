import Domain
import JSON
import Relay

/// What the phone is told, whatever carries it. It says who asks, for which service and from where, so that a foreign login
/// is seen at once; it never holds what could be used to answer, nor who the user is.
///
/// The app has the sentences, in the user's language. Their keys are `TWOEFAY_LOGIN` followed by `_SERVICE`, `_PLACE` and
/// `_IP`, as far as these are known; the arguments come in the same order. A minimal push has `TWOEFAY_LOGIN` alone, under
/// the title `TWOEFAY_TITLE`.
enum PushText {
    static let category = "TWOEFAY_LOGIN"
    /// Of one argument. The texts are bounded where they come in; this holds for those that were not.
    private static let characters = 256

    static let minimal: JSONObject = ["title-loc-key": "TWOEFAY_TITLE", "loc-key": .string(category)]

    /// What `write` makes of all that may be said, or of the fixed text where that is too long.
    static func bytes(for push: Push, limit: Int, _ write: (JSONObject) -> [UInt8]) -> [UInt8] {
        if push.detail == .full {
            let full = write(full(push))
            // Escapes can make a text six times as long: then the fixed text says that there is something to see.
            if full.count <= limit { return full }
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
