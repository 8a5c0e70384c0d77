import JSON
import Phone
import World

/// A request as the person sees it.
extension ChallengePrompt {
    var shown: String {
        var rows = context.lines.map { (label: $0.label, text: $0.value) }
        rows.append((label: "time left", text: "\(max(0, timeLeft.wholeMilliseconds / 1000)) s"))
        return ScreenRows.text(
            "\(context.displayName) (\(context.website)) asks: is this you?", rows, columns: Keyboard.columns)
    }

    /// Whose number it is, within a line.
    var asker: String { ScreenText.visible(context.displayName, limit: 40) }

    /// For programs: the context as it came, and what is needed to answer.
    func json(device: String) -> JSONObject {
        let context = (try? JSONReader.read(bytes)) ?? .null
        return [
            "device": .string(device), "challenge": .string(challenge), "context": context,
            "milliseconds_left": .integer(max(0, timeLeft.wholeMilliseconds)),
        ]
    }

    /// Why a number is none that the website can have shown; nil if it can be.
    func fault(ofNumber number: String) -> String? {
        let digits = context.numberDigits
        let isNumber = number.utf8.count == digits && number.utf8.allSatisfy { (0x30...0x39).contains($0) }
        return isNumber ? nil : "the number that the website shows has \(digits) digits"
    }
}
