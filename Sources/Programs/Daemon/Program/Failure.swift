import JSON

/// The exit statuses of the programs; docs/operators/commands.md lists them.
public enum ExitCode: Int32, Sendable, CaseIterable {
    case ok = 0
    case failed = 1
    case usage = 2
    case notFound = 3
    case conflict = 4
    case unavailable = 5

    init?(word: String) {
        guard let code = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = code
    }

    /// The status as a word, for `--json`.
    public var word: String {
        switch self {
        case .ok: "ok"
        case .failed: "failed"
        case .usage: "usage"
        case .notFound: "not_found"
        case .conflict: "conflict"
        case .unavailable: "unavailable"
        }
    }
}

/// The reason why a program failed, and what its caller can do about it. Every failure has both.
public struct Failure: Error, Sendable, Equatable {
    public let code: ExitCode
    public let message: String
    public let next: String

    public init(_ code: ExitCode, _ message: String, next: String) {
        self.code = code
        self.message = message
        self.next = next
    }

    /// The next step after a failure of OpenSSL with keys of this program's own making.
    public static let cryptoRemedy =
        "OpenSSL fails with new keys only if the machine has no memory or no randomness ('twoefay doctor' looks). "
        + "Mend that, and run the command again."

    public var text: String { "\(message)\n\(next)" }

    public var json: JSONValue {
        .object(["error": .object(["code": .string(code.word), "message": .string(message), "next": .string(next)])])
    }
}

/// The result of a command, as text for people and as JSON for programs.
public struct Report: Sendable {
    public let text: String
    public let json: JSONValue
    /// The exit status. It is not `ok` if the command worked but reports a bad state, such as
    /// `status` of a relay that is down.
    public let code: ExitCode
    /// Whether the output was printed already.
    let isPrinted: Bool

    public init(_ text: String, json: JSONValue, code: ExitCode = .ok) {
        self.text = text
        self.json = json
        self.code = code
        isPrinted = false
    }

    /// A result whose output was printed already.
    init(printed code: ExitCode) {
        text = ""
        json = .null
        self.code = code
        isPrinted = true
    }
}
