/// The content of a control file. It is applied as a whole, and replaces the previous one.
public struct Control: Sendable {
    var faults: FaultPlan
    /// The scripts by prefix of the device token. The last answer repeats.
    var scripts: [(prefix: String, answers: [ScriptedAnswer])] = []
    /// The behavior of the next connections, one for each. The last one repeats.
    var receptions: [BehaviorName] = []

    /// The answers to requests for an access token of FCM. The last one repeats.
    var tokenAnswers: [AccessTokenAnswer] = []

    /// Creates a control under which every valid push is accepted at once.
    public init(of kind: FakeServiceKind = .apns) {
        faults = FaultPlan(streams: kind == .apns ? .afterProof() : StreamLimits(steps: [.init(100)]))
    }

    /// A connection behavior by its name. Its TLS context is made when the control is applied.
    enum BehaviorName: Sendable, Equatable {
        case serve, hang, cut, goAway, freeze
        case tls(TLSFault)

        static let words: [(String, BehaviorName)] =
            [("serve", .serve), ("hang", .hang), ("cut", .cut), ("goaway", .goAway), ("freeze", .freeze)]
            + TLSFault.allCases.map { ($0.rawValue, .tls($0)) }

        func behavior(of team: FakeTeam) throws -> ConnectionBehavior {
            switch self {
            case .serve: .serve
            case .hang: .hang
            case .cut: .cut
            case .goAway: .goAway
            case .freeze: .freeze
            case .tls(let fault): .tls(try team.tls(fault))
            }
        }
    }
}

/// The services that the module replaces.
public enum FakeServiceKind: Sendable {
    case apns, fcm

    /// The reasons that the service has for a refusal.
    var reasons: [RefusalReason] { self == .apns ? RefusalReason.apple : RefusalReason.fcm }

    /// Whether a control file may contain this text as the prefix of a device token.
    func isPrefix(_ text: String) -> Bool {
        switch self {
        case .apns: text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        case .fcm: text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
        }
    }

    /// The form of such a prefix.
    var prefixForm: String { self == .apns ? "lower-case hexadecimal digits" : "visible ASCII characters" }
}

extension FakePushService {
    /// Applies a control file in place of all earlier settings. All counts start again.
    public func follow(_ control: Control, of team: FakeTeam) async throws {
        let receptions = try control.receptions.map { try $0.behavior(of: team) }
        replaceScripts(control.scripts)
        setConnectionBehavior(receptions, repeatsLast: true)
        setTokenAnswers(control.tokenAnswers)
        await injectFaults(control.faults)
    }
}
