import DeliveryOutcomes
import FakePushServices
import HTTP
import HTTP2
import JSON
import Pushes
import TestSupport
import Testing
import World

/// The table of FCM's answers, row by row, over real TLS and HTTP/2: the outcome of the push, how often it was sent,
/// and the effect on later pushes.
@Suite(.serialized) struct FCMRowsTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let answers: [ScriptedAnswer]
        let outcome: String
        /// The number of times that this push reaches the service.
        let requests: Int
        /// Whether other pushes are stopped too, because the credential is refused.
        let stops: Bool
        /// Whether an operator is alerted.
        let alarms: Bool

        init(
            _ answers: [ScriptedAnswer], _ outcome: String, requests: Int = 1, stops: Bool = false,
            alarms: Bool = false
        ) {
            testDescription = "\(outcome), after \(requests)"
            self.answers = answers
            self.outcome = outcome
            self.requests = requests
            self.stops = stops
            self.alarms = alarms
        }
    }

    static let rows = [
        Row([.accept], "accepted"),
        Row([.refuse(.fcmUnregistered)], "dead: UNREGISTERED"),
        Row([.refuse(.invalidRegistration)], "dead: INVALID_ARGUMENT"),
        Row([.refuse(.invalidArgument)], "bad request: INVALID_ARGUMENT", alarms: true),
        Row([.refuse(.senderIDMismatch)], "bad request: SENDER_ID_MISMATCH", alarms: true),
        Row([.refuse(.thirdPartyAuthError)], "bad request: THIRD_PARTY_AUTH_ERROR", alarms: true),
        Row([.refuse(.notFound)], "bad request: NOT_FOUND", alarms: true),
        Row([.refuse(.quotaExceeded)], "in 60 s: QUOTA_EXCEEDED"),
        Row([.refuse(.quotaExceeded, retryAfter: .seconds(77))], "in 77 s: QUOTA_EXCEEDED"),
        Row([.refuse(.unavailable, retryAfter: .seconds(3))], "in 3 s: UNAVAILABLE, for all"),
        Row([.refuse(.unavailable)], "in 10 to 15 s: UNAVAILABLE, for all"),
        Row([.refuse(.internal)], "in 10 to 15 s: INTERNAL, for all"),
        Row([.respond(Response(status: 502, body: Array("<html>".utf8)))], "in 10 to 15 s: 502, for all"),
        // The sender requests another access token, and sends the push again.
        Row([.refuse(.unauthenticated), .accept], "accepted", requests: 2),
        Row(
            [.refuse(.unauthenticated), .refuse(.unauthenticated)], "credential: UNAUTHENTICATED", requests: 2,
            stops: true, alarms: true),
        Row([.refuse(.permissionDenied)], "credential: PERMISSION_DENIED", stops: true, alarms: true),
        // The rules of the pool are those of APNs.
        Row([.goAway(replays: 1)], "accepted", requests: 2),
        Row([.reset(.refusedStream)], "accepted", requests: 2),
        Row([.reset(.internalError)], "ambiguous"),
        Row([.cut(accepts: true)], "ambiguous"),
    ]

    private static func spell(_ outcome: DeliveryOutcome, like row: Row) -> String {
        switch outcome {
        case .accepted: return "accepted"
        case .unregistered(_, let reason): return "dead: \(reason)"
        case .retry(let pause, let reason), .unavailable(let pause, let reason):
            let pause = pause ?? .zero
            let grows = row.outcome.hasPrefix("in 10 to") && pause >= .seconds(10) && pause <= .seconds(15)
            let text = "in \(grows ? "10 to 15" : "\(pause.components.seconds)") s: \(reason)"
            if case .unavailable = outcome { return "\(text), for all" }
            return text
        case .misconfigured(.service, let reason): return "credential: \(reason)"
        case .misconfigured(.message, let reason): return "bad request: \(reason)"
        case .ambiguous: return "ambiguous"
        case .declined(let reason): return "declined: \(reason)"
        }
    }

    @Test(arguments: rows) func everyAnswerHasTheConsequenceOfTheTable(_ row: Row) async throws {
        try await FCMRig.with { rig in
            let service = rig.fcm.service
            #expect(await rig.send(rig.message("b")) == .accepted(by: nil))
            #expect(try await service.nextRequest().path == "/token")
            _ = try await service.nextRequest()
            service.script("a", row.answers)
            let outcome = await rig.send(rig.message("a"))
            #expect(Self.spell(outcome, like: row) == row.outcome)
            let next = await rig.send(rig.message("b"))
            if row.stops {
                guard case .misconfigured(.service, _) = next else {
                    Issue.record("sent with a credential that is refused: \(next)")
                    return
                }
            } else {
                #expect(next == .accepted(by: nil))
            }
            var requests: [String] = []
            while let request = try? await service.nextRequest(within: .zero) {
                requests.append(request.path == "/token" ? "token" : String(request.push?.deviceToken.prefix(1) ?? "-"))
            }
            #expect(requests.count { $0 == "a" } == row.requests, "\(requests)")
            #expect(requests.count { $0 == "b" } == (row.stops ? 0 : 1), "\(requests)")
            let alarms = rig.sink.lines.filter { ObservedSink.isOf("fcm.refused", $0) && $0.contains("level=error") }
            #expect(alarms.isEmpty != row.alarms, "\(alarms)")
        }
    }

    /// Every reason of FCM's has a row.
    @Test func tableCoversEveryReason() {
        var seen: Set<RefusalReason> = []
        for row in Self.rows {
            for answer in row.answers { if case .refuse(let reason, _, _) = answer { seen.insert(reason) } }
        }
        #expect(Set(RefusalReason.fcm).subtracting(seen) == [])
    }

    @Test func manyBadTokensAreKept() async throws {
        try await FCMRig.with { rig in
            rig.fcm.service.script("a", .refuse(.invalidRegistration), repeatsLast: true)
            for _ in 0..<5 {
                guard case .unregistered = await rig.send(rig.message("a")) else {
                    Issue.record("a bad token is kept")
                    return
                }
            }
            #expect(
                await rig.send(rig.message("a")) == .misconfigured(.message, reason: "INVALID_ARGUMENT"))
            #expect(await rig.send(rig.message("b")) == .accepted(by: nil))
            guard case .unregistered = await rig.send(rig.message("a")) else {
                Issue.record("a token is kept although another one was accepted")
                return
            }
        }
    }

    /// The service checks the message as FCM does; so the relay's request is right.
    @Test func acceptedMessageHasTheDataAndTheLifeOfThePush() async throws {
        try await FCMRig.with { rig in
            let message = rig.message()
            let before = SystemTime().now().seconds
            #expect(await rig.send(message) == .accepted(by: nil))
            let push = try await rig.fcm.service.next()
            #expect(push.deviceToken == message.token && push.payload == message.data)
            #expect(push.priority == 10 && push.topic == "fake-project")
            let expires = try #require(push.expiration)
            #expect((before + 298...SystemTime().now().seconds + 300).contains(expires))
        }
    }
}
