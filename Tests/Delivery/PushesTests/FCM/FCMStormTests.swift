import DeliveryOutcomes
import FakePushServices
import Glibc
import HTTP2
import Pushes
import Synchronization
import TestSupport
import Testing
import World

/// Many pushes through a service that goes away, resets, refuses, withdraws access tokens and changes its limits. The
/// whole relay does the same in `Benchmarks/Pushes/storm 100000 1000 fcm`.
@Suite(.serialized) struct FCMStormTests {
    /// The number of pushes: 1,000, or as `TWOEFAY_STORM` says.
    private static let count = getenv("TWOEFAY_STORM").flatMap { Int(String(cString: $0)) } ?? 1000

    /// The ends of the pushes, as the relay would record them.
    private final class Ledger: Sendable {
        private struct State {
            var next = 0
            var ends: [String: [String]] = [:]
            var ambiguous: Set<String> = []
        }

        private let state = Mutex(State())

        func take() -> Bool {
            state.withLock { state in
                state.next += 1
                return state.next <= FCMStormTests.count
            }
        }

        func ended(_ challenge: String, _ end: String) {
            state.withLock { $0.ends[challenge, default: []].append(end) }
        }

        func doubted(_ challenge: String) { state.withLock { _ = $0.ambiguous.insert(challenge) } }

        var ends: [String: [String]] { state.withLock { $0.ends } }
        var ambiguous: Set<String> { state.withLock { $0.ambiguous } }
    }

    @Test func everyPushHasExactlyOneEnd() async throws {
        var options = PushOptions.patient
        options.connections = 2
        try await FCMRig.with(keeping: .counts, options: options) { rig in
            let service = rig.fcm.service
            await service.injectFaults(
                FaultPlan(
                    rules: [
                        .every(250, .goAway(replays: 3)), .every(100, .reset(.internalError, accepts: true)),
                        .every(100, .reset(.internalError)), .every(40, .refuse(.unavailable)),
                        .every(150, .refuse(.internal)), .every(70, .refuse(.quotaExceeded)),
                        .every(200, .refuse(.unauthenticated)),
                    ], streams: .changing([100, 1], every: 60)))
            let ledger = Ledger()
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask { while ledger.take() { await Self.deliver(rig, number % 2, ledger) } }
                }
            }
            let ends = ledger.ends
            #expect(ends.count == Self.count)
            #expect(ends.values.allSatisfy { $0.count == 1 })
            // This service refuses no push for good. The other pushes were ambiguous twice.
            let accepted = ends.filter { $0.value == ["accepted"] }
            #expect(ends.count - accepted.count <= ledger.ambiguous.count)
            let deliveries = service.deliveries
            #expect(deliveries.twice.isSubset(of: Set(ledger.ambiguous.map(Self.uuid))))
            #expect(deliveries.ids >= accepted.count)
            #expect(rig.count("fcm.credential.refused") == 0)
        }
    }

    /// Delivers a push as the relay does: a push that the service did not take is sent again, and an ambiguous one once
    /// more. The pauses are left out.
    private static func deliver(_ rig: FCMRig, _ loop: Int, _ ledger: Ledger) async {
        let challenge = UniqueText.next()
        var hasDoubt = false
        while true {
            switch await rig.send(rig.message(challenge: challenge), on: loop) {
            case .accepted: return ledger.ended(challenge, "accepted")
            case .retry, .unavailable: continue
            case .ambiguous:
                ledger.doubted(challenge)
                if hasDoubt { return ledger.ended(challenge, "ambiguous") }
                hasDoubt = true
            case let other: return ledger.ended(challenge, "\(other)")
            }
        }
    }

    /// The form in which the service counts deliveries.
    private static func uuid(_ challenge: String) -> String {
        var rest = Substring(challenge)
        return [8, 4, 4, 4, 12].map { count in
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }.joined(separator: "-")
    }
}
