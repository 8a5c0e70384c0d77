import JSON

/// The result of one check of `twoefay doctor`.
public struct Finding: Sendable, Equatable {
    public enum State: String, Sendable, CaseIterable {
        case ok
        case warning
        case failure
        /// Not checked, for the reason in `measured`.
        case skipped
    }

    public let check: String
    public let state: State
    /// The measured value, in one line.
    public let measured: String
    /// The remedy for the operator; nil if there is nothing to do.
    public let remedy: String?

    init(_ check: String, _ state: State, _ measured: String, remedy: String? = nil) {
        self.check = check
        self.state = state
        self.measured = measured
        self.remedy = remedy
    }
}

extension Finding {
    /// Returns the report of the findings. A failure makes the exit status `failed`; warnings do not.
    public static func report(_ findings: [Finding]) -> Report {
        let count = { (state: State) in findings.count { $0.state == state } }
        let width = findings.map(\.check.count).max() ?? 0
        var lines: [String] = []
        for finding in findings {
            let name = finding.check + String(repeating: " ", count: width - finding.check.count)
            let state = finding.state.rawValue + String(repeating: " ", count: 7 - finding.state.rawValue.count)
            lines.append("\(state)  \(name)  \(finding.measured)")
            if let remedy = finding.remedy {
                lines.append(String(repeating: " ", count: 9 + width + 2) + remedy)
            }
        }
        let sums = State.allCases.map { "\(count($0)) \($0.rawValue)" }
        lines += ["", sums.joined(separator: ", ") + "."]
        let hasFailed = count(.failure) > 0
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "healthy": .bool(!hasFailed),
                "counts": .object(JSONObject(State.allCases.map { ($0.rawValue, .integer(Int64(count($0)))) })),
                "checks": .array(findings.map(\.json)),
            ]), code: hasFailed ? .failed : .ok)
    }

    private var json: JSONValue {
        .object([
            "check": .string(check), "state": .string(state.rawValue), "measured": .string(measured),
            "remedy": remedy.map { .string($0) } ?? .null,
        ])
    }
}
