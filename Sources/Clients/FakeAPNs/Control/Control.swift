/// What a control file says. Applied as a whole, in place of what was said before.
public struct Control: Sendable {
    var faults = FaultPlan(streams: .afterProof())
    /// By the first digits of device tokens. The last answer stays.
    var scripts: [(prefix: String, answers: [ScriptedAnswer])] = []
    /// One each for the next connections. The last stays.
    var receptions: [BehaviorName] = []

    /// Every right push is accepted, at once.
    public init() {}

    /// A reception by its word: what TLS it takes is made when it is applied.
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

extension FakeAPNs {
    /// Does from now on what a control file says, and nothing that was said before. All counts begin anew.
    public func follow(_ control: Control, of team: FakeTeam) async throws {
        let receptions = try control.receptions.map { try $0.behavior(of: team) }
        replaceScripts(control.scripts)
        setConnectionBehavior(receptions, repeatsLast: true)
        await injectFaults(control.faults)
    }
}
