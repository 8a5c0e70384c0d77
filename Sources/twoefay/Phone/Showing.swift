import JSON
import Phone
import World

/// A request as the person sees it.
extension Question {
    var shown: String {
        let context = context
        var rows = context.lines.map { ($0.label, $0.value) }
        rows.append(("time left", "\(max(0, timeLeft.wholeMilliseconds / 1000)) s"))
        let width = rows.map(\.0.count).max() ?? 0
        let table = rows.map { label, value in
            "  \(label)\(String(repeating: " ", count: width - label.count + 2))\(value)"
        }
        let title = "\(context.displayName) (\(context.website)) asks: is this you?"
        return ([title] + table).joined(separator: "\n")
    }

    /// For programs: the context as it came, and what is needed to answer.
    func told(device: String) -> JSONObject {
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
