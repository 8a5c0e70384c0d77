/// The content of a control file. It is applied as a whole, and replaces the previous one.
public struct Control: Sendable {
    var faults = FaultPlan(streams: .afterProof())
    /// The scripts by prefix of the device token. The last answer repeats.
    var scripts: [(prefix: String, answers: [ScriptedAnswer])] = []
    /// The behavior of the next connections, one for each. The last one repeats.
    var receptions: [BehaviorName] = []

    /// Creates a control under which every valid push is accepted at once.
    public init() {}

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

extension FakePushService {
    /// Applies a control file in place of all earlier settings. All counts start again.
    public func follow(_ control: Control, of team: FakeTeam) async throws {
        let receptions = try control.receptions.map { try $0.behavior(of: team) }
        replaceScripts(control.scripts)
        setConnectionBehavior(receptions, repeatsLast: true)
        await injectFaults(control.faults)
    }
}
