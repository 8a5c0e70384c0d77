import Bytes
import Domain
import JSON
import Relay

/// A text that a website passes on as a browser sent it. Nobody can make a login fail by it: what
/// cannot be shown is left out, and the answer names what is shown instead.
struct BrowserText: Sendable {
    /// The text as the phone shows it; nil if nothing of it can be shown.
    let shown: String?
    let isChanged: Bool

    /// - Parameter text: the text that was sent; nil for none.
    init(_ text: String?, limit: Int) {
        let shown = text.flatMap { $0.showable(limit: limit) }
        self.shown = shown
        isChanged = text.map { shown?.hasSameBytes(as: $0) != true } ?? false
    }
}

extension Field where Value == BrowserText {
    static func browserText(_ name: String, limit: Int, _ summary: String) -> Field {
        Field(
            name: name,
            summary:
                "\(summary). What cannot be shown is left out, and what follows \(limit) characters",
            schema: ["type": ["string", "null"], "pattern": .string(FieldPattern.any)]
        ) { value, parameter, faults in
            if value == .null { return BrowserText(nil, limit: limit) }
            guard let text = value.string else {
                faults.append(
                    FieldFault(
                        parameter, .type,
                        LocalizedText("must be a string or null", de: "muss ein String oder null sein")))
                return nil
            }
            return BrowserText(text, limit: limit)
        }
    }
}
