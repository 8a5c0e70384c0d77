import HTTP
import HTTP2
import World
import YAML

/// The kind of an answer in a control file.
enum AnswerKind {
    /// The names of answers that are not one of the service's reasons.
    enum Word: String, CaseIterable {
        case accept, respond, silence, lost, reset, goaway, cut, freeze
    }

    case word(Word)
    case reason(RefusalReason)

    /// Returns the kinds by their names.
    static func words(of kind: FakeServiceKind) -> [(String, AnswerKind)] {
        Word.allCases.map { ($0.rawValue, .word($0)) } + kind.reasons.map { ($0.rawValue, .reason($0)) }
    }
}

/// Reads answers: a name alone, or a mapping with the name and its options.
extension ControlReader {
    mutating func answer(_ node: YAMLNode, besides others: [String] = []) -> ScriptedAnswer? {
        guard node.mapping != nil else { return word(node, "an answer is", answers).map { Self.plain($0) } }
        guard let named = node["answer"] else {
            problem(node.place, "answer is missing, as in {answer: Unregistered, after: 2s}")
            return nil
        }
        guard let kind = word(named, "an answer is", answers) else { return nil }
        let known = others + ["answer", "after"] + Self.details(of: kind)
        let before = problems.count
        _ = members(of: node, "the answer \(named.string ?? "")", knows: known)
        let delay = node["after"].map { duration($0, "after") } ?? nil
        let answer = answer(kind, node)
        guard problems.count == before else { return nil }
        return delay.map { .after($0, answer) } ?? answer
    }

    private static func plain(_ kind: AnswerKind) -> ScriptedAnswer {
        switch kind {
        case .reason(let reason): .refuse(reason)
        case .word(.accept): .accept
        case .word(.respond): .respond(Response(status: 200))
        case .word(.silence): .silence
        case .word(.lost): .lost
        case .word(.reset): .reset(.refusedStream)
        case .word(.goaway): .goAway()
        case .word(.cut): .cut()
        case .word(.freeze): .freeze()
        }
    }

    private static func details(of kind: AnswerKind) -> [String] {
        switch kind {
        case .reason(let reason): reason.status == 410 ? ["timestamp", "retry-after"] : ["retry-after"]
        case .word(.respond): ["status", "body"]
        case .word(.reset): ["code", "accepted"]
        case .word(.goaway): ["replays"]
        case .word(.cut), .word(.freeze): ["accepted"]
        case .word: []
        }
    }

    private mutating func answer(_ kind: AnswerKind, _ node: YAMLNode) -> ScriptedAnswer {
        let accepts = node["accepted"].flatMap { bool($0, "accepted") } ?? false
        switch kind {
        case .reason(let reason):
            return .refuse(
                reason, timestamp: node["timestamp"].flatMap { timestamp($0) },
                retryAfter: node["retry-after"].flatMap { duration($0, "retry-after") })
        case .word(.respond):
            let status = node["status"].flatMap { number($0, "status", 200...599) } ?? 200
            return .respond(Response(status: status, body: Array((node["body"]?.string ?? "").utf8)))
        case .word(.reset):
            let code = node["code"].flatMap { word($0, "code is", ErrorCode.names) } ?? .refusedStream
            if accepts, code == .refusedStream, let place = node["accepted"]?.place {
                problem(place, "REFUSED_STREAM says that the request was not processed: use another code")
            }
            return .reset(code, accepts: accepts)
        case .word(.goaway):
            return .goAway(replays: node["replays"].flatMap { number($0, "replays", 0...1_000_000) } ?? 0)
        case .word(.cut): return .cut(accepts: accepts)
        case .word(.freeze): return .freeze(accepts: accepts)
        case .word: return Self.plain(kind)
        }
    }

    /// Reads a time in RFC 3339, or in milliseconds since 1970 as Apple sends it.
    private mutating func timestamp(_ node: YAMLNode) -> Timestamp? {
        if let milliseconds = node.integer { return Timestamp(milliseconds: milliseconds) }
        if let text = node.string, let time = Timestamp(rfc3339: text) { return time }
        problem(node.place, "timestamp must be a time such as 2026-01-31T12:00:00Z, or milliseconds since 1970")
        return nil
    }
}
