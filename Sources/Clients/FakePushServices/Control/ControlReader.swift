import Bytes
import YAML

/// Reads a control file. It reports all errors at once, each with its position in the file. Tested
/// in `ControlTests.swift`.
public struct ControlReader {
    public struct Problems: Error, Sendable, Equatable, CustomStringConvertible {
        /// `FILE:LINE:COLUMN: what is wrong`
        public let all: [String]
        public var description: String { all.joined(separator: "\n") }
    }

    private let kind: FakeServiceKind
    private var control: Control
    /// The words that an answer may have, by the service.
    let answers: [(String, AnswerKind)]
    var problems: [YAMLError] = []

    private init(_ kind: FakeServiceKind) {
        self.kind = kind
        control = Control(of: kind)
        answers = AnswerKind.words(of: kind)
    }

    /// Reads a control file.
    ///
    /// - Parameters:
    ///   - file: the file name for messages.
    ///   - kind: the service that the file is for.
    public static func read(
        _ bytes: [UInt8], file: String, for kind: FakeServiceKind = .apns
    ) throws(Problems) -> Control {
        var reader = ControlReader(kind)
        do throws(YAMLError) {
            reader.readAll(try YAMLReader.read(bytes, file: file))
        } catch {
            reader.problems = [error]
        }
        guard reader.problems.isEmpty else { throw Problems(all: reader.problems.map(\.description)) }
        return reader.control
    }

    private static let keys = ["latency", "tokens", "every", "streams", "connections", "frozen"]
    private static let accessTokens = "access-tokens"

    private mutating func readAll(_ root: YAMLNode) {
        guard !root.isNull else { return }
        let keys = Self.keys + (kind == .fcm ? [Self.accessTokens] : [])
        for member in members(of: root, "the control file", knows: keys) {
            let value = member.value
            // A key without a value is the same as a missing key.
            guard !value.isNull else { continue }
            switch member.name {
            case "latency": control.faults.latency = duration(value, "latency") ?? .zero
            case "tokens": readTokens(value)
            case "every": readRules(value)
            case "streams": control.faults.streams = streamLimits(value)
            case "connections": readConnections(value)
            case Self.accessTokens: readAccessTokens(value)
            default: readFrozen(value)
            }
        }
    }

    // MARK: Keys

    private mutating func readTokens(_ node: YAMLNode) {
        for member in members(of: node, "tokens") {
            let digits = member.name == "all" ? "" : member.name
            guard kind.isPrefix(digits), !member.name.isEmpty else {
                problem(
                    member.place, "\(member.name) is not a token prefix: it must be \(kind.prefixForm), or all")
                continue
            }
            let nodes = member.value.sequence ?? [member.value]
            let answers = nodes.compactMap { answer($0) }
            guard !nodes.isEmpty else {
                problem(member.value.place, "must be an answer, or a list of answers")
                continue
            }
            control.scripts.append((digits, answers))
        }
    }

    private mutating func readRules(_ node: YAMLNode) {
        for rule in items(of: node, "every") {
            guard rule.mapping != nil else {
                problem(rule.place, "must have the form {requests: 500, answer: ServiceUnavailable}")
                continue
            }
            guard let count = rule["requests"] else {
                problem(rule.place, "requests is missing: one request in this number gets the answer")
                continue
            }
            let requests = number(count, "requests", 1...1_000_000_000)
            if let answer = answer(rule, besides: ["requests"]), let requests {
                control.faults.rules.append(.every(requests, answer))
            }
        }
    }

    private mutating func readConnections(_ node: YAMLNode) {
        for item in node.sequence ?? [node] {
            if let meeting = word(item, "a connection is met with", Control.BehaviorName.words) {
                control.receptions.append(meeting)
            }
        }
    }

    private mutating func readAccessTokens(_ node: YAMLNode) {
        let words: [(String, AccessTokenAnswer)] = [
            ("issue", .issue(life: .seconds(3600))), ("refuse", .refuse), ("unavailable", .unavailable),
        ]
        for item in node.sequence ?? [node] {
            if item.mapping == nil {
                if let answer = word(item, "an access token is", words) { control.tokenAnswers.append(answer) }
                continue
            }
            _ = members(of: item, "an access token", knows: ["life"])
            if let life = item["life"].flatMap({ duration($0, "life") }), life >= .seconds(1) {
                control.tokenAnswers.append(.issue(life: life))
            } else {
                problem(item.place, "an access token must be a word, or have its life, as in {life: 90s}")
            }
        }
    }

    private mutating func readFrozen(_ node: YAMLNode) {
        for item in items(of: node, "frozen") {
            if let number = number(item, "a connection's number", 1...1_000_000_000) {
                control.faults.frozen.insert(number)
            }
        }
    }

    // MARK: Values

    mutating func problem(_ place: YAMLPosition, _ message: String) { problems.append(YAMLError(message, at: place)) }

    /// Returns the members of a mapping, and reports unknown names.
    ///
    /// - Parameter knows: the known names; nil if the caller checks the names itself.
    mutating func members(of node: YAMLNode, _ what: String, knows: [String]? = nil) -> [YAMLNode.Member] {
        guard let members = node.mapping else {
            problem(node.place, "\(what) must contain keys with values")
            return []
        }
        guard let knows else { return members }
        return members.filter { member in
            guard !knows.contains(member.name) else { return true }
            let near = Spelling.nearest(to: member.name, among: knows).map { "did you mean \($0)?" }
            problem(
                member.place,
                "\(member.name) is not a key of \(what); \(near ?? "the keys are \(knows.joined(separator: ", "))")")
            return false
        }
    }

    mutating func items(of node: YAMLNode, _ what: String) -> [YAMLNode] {
        guard let items = node.sequence else {
            problem(node.place, "\(what) must be a list")
            return []
        }
        return items
    }

    mutating func number(_ node: YAMLNode, _ what: String, _ range: ClosedRange<Int>) -> Int? {
        guard let number = node.integer.flatMap({ Int(exactly: $0) }), range.contains(number) else {
            problem(node.place, "\(what) must be a number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }

    mutating func bool(_ node: YAMLNode, _ what: String) -> Bool? {
        if node.bool == nil { problem(node.place, "\(what) must be true or false") }
        return node.bool
    }

    mutating func word<Value>(_ node: YAMLNode, _ what: String, _ words: [(String, Value)]) -> Value? {
        guard let text = node.string, !node.isNull else {
            problem(node.place, "\(what) one of: \(words.map(\.0).joined(separator: ", "))")
            return nil
        }
        if let found = words.first(where: { $0.0 == text }) { return found.1 }
        let near = Spelling.nearest(to: text, among: words.map(\.0)).map { "did you mean \($0)?" }
        problem(node.place, "\(text) is unknown; \(near ?? "allowed are \(words.map(\.0).joined(separator: ", "))")")
        return nil
    }

    private static let units: [(String, Int64)] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)]

    /// Reads a duration: a whole number with its unit, as in `250ms`, `3s`, `2m` or `1h`. The limit
    /// is one day.
    mutating func duration(_ node: YAMLNode, _ what: String) -> Duration? {
        let text = node.string ?? ""
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = Self.units.first { $0.0 == text.dropFirst(digits.count) }
        guard let unit, let count = Int64(digits), count <= 86_400_000 / unit.1 else {
            problem(node.place, "\(what) must be a time with a unit, such as 250ms, 3s, 2m or 1h, and at most a day")
            return nil
        }
        return .milliseconds(count * unit.1)
    }
}
