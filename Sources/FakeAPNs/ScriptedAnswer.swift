import HTTP
import World

/// What a request that is right in itself gets.
public indirect enum ScriptedAnswer: Sendable {
    case accept
    /// With 410, `timestamp` says since when the token is dead.
    case refuse(AppleReason, timestamp: Timestamp? = nil)
    /// Something that Apple would not say.
    case respond(Response)
    /// Nothing at all; the stream stays open.
    case silence
    case after(Duration, ScriptedAnswer)
}

/// Scripted answers by the first digits of the device token. The longest beginning counts.
struct Script {
    private struct Entry {
        var answers: [ScriptedAnswer]
        let repeatsLast: Bool
    }

    private var entries: [String: Entry] = [:]

    mutating func set(_ prefix: String, _ answers: [ScriptedAnswer], repeatsLast: Bool) {
        entries[prefix] = answers.isEmpty ? nil : Entry(answers: answers, repeatsLast: repeatsLast)
    }

    /// Takes the next answer for that token; one that was not scripted is accepted.
    mutating func take(for token: String) -> ScriptedAnswer {
        let prefix = entries.keys.filter { token.hasPrefix($0) }.max { $0.utf8.count < $1.utf8.count }
        guard let prefix, var entry = entries[prefix] else { return .accept }
        let answer = entry.answers[0]
        if entry.answers.count > 1 {
            entry.answers.removeFirst()
            entries[prefix] = entry
        } else if !entry.repeatsLast {
            entries[prefix] = nil
        }
        return answer
    }
}
