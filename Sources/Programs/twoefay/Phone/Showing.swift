import JSON
import Phone
import World

/// The output of a challenge.
extension ChallengePrompt {
    /// The challenge for the person, with the demands that this phone does not meet, and those
    /// about which this report says nothing.
    func shown(reporting posture: PhonePosture?) -> String {
        var rows = context.lines.map { (label: $0.label, text: $0.value) }
        if asksPlace { rows.append((label: "asks for", text: "the coarse place of this phone (--place)")) }
        if let demands {
            rows.append((label: "demands", text: demands.text))
            if let unmet = demands.unmetText { rows.append((label: "not met", text: unmet)) }
            if let unreported = demands.unreported(posture) {
                rows.append((label: "not reported", text: unreported))
            }
        }
        rows.append((label: "time left", text: "\(max(0, timeLeft.wholeMilliseconds / 1000)) s"))
        return ScreenRows.text(
            "\(context.displayName) (\(context.website)) asks: is this you?", rows, columns: Keyboard.columns)
    }

    /// The website's name in one line, for the question about the number.
    var asker: String { ScreenText.visible(context.displayName, limit: 40) }

    /// Returns the challenge for programs: its context as received, and the values needed to
    /// answer.
    func json(device: String, reporting posture: PhonePosture?) -> JSONObject {
        let context = (try? JSONReader.read(bytes)) ?? .null
        var object: JSONObject = [
            "device": .string(device), "challenge": .string(challenge), "context": context,
            "milliseconds_left": .integer(max(0, timeLeft.wholeMilliseconds)), "asks_place": .bool(asksPlace),
        ]
        if let demands {
            object.set("demands", .string(demands.text))
            object.set("unmet", .array(demands.unmet.map { .string($0) }))
            object.set("missing", .text(demands.unmetText ?? demands.unreported(posture)))
        }
        return object
    }

    /// The reason why the website cannot have shown this number; nil if it can have.
    func fault(ofNumber number: String) -> String? {
        let digits = context.numberDigits
        let isNumber = number.utf8.count == digits && number.utf8.allSatisfy { (0x30...0x39).contains($0) }
        return isNumber ? nil : "the number that the website shows has \(digits) digits"
    }
}
