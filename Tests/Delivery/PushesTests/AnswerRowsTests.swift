import DeliveryOutcomes
import FakePushServices
import HTTP
import HTTP2
import Pushes
import TestSupport
import Testing
import World

/// The table of Apple's answers, row by row, over real TLS and HTTP/2: the outcome of the push, how often and on
/// which connection it was sent, and the effect on the connection and on later pushes.
@Suite(.serialized) struct AnswerRowsTests {
    enum Connection { case kept, replaced }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let answers: [ScriptedAnswer]
        let outcome: String
        /// The number of times that this push reaches the service.
        let requests: Int
        let connection: Connection
        /// Whether other pushes are stopped too, because the credential is refused.
        let stops: Bool
        /// Whether an operator is alerted.
        let alarms: Bool

        init(
            _ answers: [ScriptedAnswer], _ outcome: String, requests: Int = 1, _ connection: Connection = .kept,
            stops: Bool = false, alarms: Bool = false
        ) {
            testDescription = answers.map(Self.word).joined(separator: ", ") + ": " + outcome
            self.answers = answers
            self.outcome = outcome
            self.requests = requests
            self.connection = connection
            self.stops = stops
            self.alarms = alarms
        }

        private static func word(_ answer: ScriptedAnswer) -> String {
            switch answer {
            case .refuse(let reason, _, let pause): reason.rawValue + (pause == nil ? "" : " with a pause")
            case .respond(let response): "\(response.status) " + String(decoding: response.body, as: UTF8.self)
            case .reset(let code, _): "reset \(code.rawValue)"
            default: "\(answer)"
            }
        }
    }

    private static func refuse(_ reason: RefusalReason, _ times: Int = 1) -> [ScriptedAnswer] {
        [ScriptedAnswer](repeating: .refuse(reason), count: times)
    }

    /// Answers with a reason that is in no table.
    private static func novelty(_ status: Int, _ reason: String = "Novelty", times: Int = 1) -> [ScriptedAnswer] {
        let response = Response(status: status, body: Array(#"{"reason":"\#(reason)"}"#.utf8))
        return [ScriptedAnswer](repeating: .respond(response), count: times)
    }

    private static let ourMistakes: [RefusalReason] = [
        .badCollapseID, .badExpirationDate, .badMessageID, .badPriority, .badTopic, .duplicateHeaders,
        .invalidPushType, .missingDeviceToken, .missingTopic, .payloadEmpty, .badPath, .methodNotAllowed,
        .payloadTooLarge,
    ]
    private static let refusedCredentials: [RefusalReason] = [
        .topicDisallowed, .badCertificate, .badCertificateEnvironment, .forbidden, .invalidProviderToken,
        .missingProviderToken, .badEnvironmentKeyIDInToken,
    ]
    private static let since = Timestamp(milliseconds: 1_600_000_000_123)

    static let rows: [Row] =
        [
            Row([.accept], "accepted"),
            Row(refuse(.badDeviceToken), "dead: BadDeviceToken"),
            Row(refuse(.deviceTokenNotForTopic), "dead: DeviceTokenNotForTopic", alarms: true),
        ]
        + ourMistakes.map { Row(refuse($0), "bad request: \($0.rawValue)", alarms: true) }
        + [
            Row(refuse(.idleTimeout), "accepted", requests: 2, .replaced),
            Row(refuse(.idleTimeout, 2), "later: IdleTimeout", requests: 2, .replaced),
        ]
        + refusedCredentials.map { Row(refuse($0), "credential: \($0.rawValue)", stops: true, alarms: true) }
        + [
            Row(
                novelty(403, "BadEnvironmentKeyInToken"), "credential: BadEnvironmentKeyInToken", stops: true,
                alarms: true),
            // The relay's token is young, so no other is made. The clock is suspected.
            Row(
                refuse(.expiredProviderToken), "credential: ExpiredProviderToken: check the clock", .replaced,
                stops: true, alarms: true),
            Row(refuse(.unrelatedKeyIDInToken), "accepted", requests: 2, .replaced),
            Row(
                refuse(.unrelatedKeyIDInToken, 2), "credential: UnrelatedKeyIdInToken", requests: 2, .replaced,
                stops: true, alarms: true),
            Row([.refuse(.unregistered, timestamp: since)], "dead: Unregistered, since 1600000000123"),
            Row([.refuse(.expiredToken, timestamp: since)], "dead: ExpiredToken, since 1600000000123"),
            Row(refuse(.tooManyRequests), "later: TooManyRequests"),
            Row([.refuse(.tooManyRequests, retryAfter: .seconds(77))], "in 77 s: TooManyRequests"),
            Row(refuse(.tooManyProviderTokenUpdates), "later: TooManyProviderTokenUpdates", alarms: true),
        ]
        + [RefusalReason.internalServerError, .serviceUnavailable, .shutdown].flatMap { reason in
            [
                Row(refuse(reason), "accepted", requests: 2, .replaced),
                Row(refuse(reason, 2), "down: \(reason.rawValue)", requests: 2, .replaced),
            ]
        }
        + [
            // Certainly not processed: sent again at once, three times at most.
            Row([.goAway(replays: 1)], "accepted", requests: 2, .replaced),
            Row([.reset(.refusedStream)], "accepted", requests: 2, .replaced),
            Row([ScriptedAnswer](repeating: .reset(.refusedStream), count: 3), "accepted", requests: 4, .replaced),
            Row([ScriptedAnswer](repeating: .reset(.refusedStream), count: 4), "later", requests: 4, .replaced),
            // Answered, but the connection takes no further pushes.
            Row([.goAway()], "accepted", .replaced),
            // The result is unknown: the sender does not repeat it.
            Row([.reset(.internalError)], "ambiguous"),
            Row([.reset(.cancel, accepts: true)], "ambiguous"),
            Row([.cut()], "ambiguous", .replaced),
            Row([.cut(accepts: true)], "ambiguous", .replaced),
            // A reason that Apple may add is handled by its status, and its text is kept.
            Row(novelty(400), "bad request: Novelty", alarms: true),
            Row(novelty(403), "credential: Novelty", stops: true, alarms: true),
            Row(novelty(410), "dead: Novelty"),
            Row(novelty(429), "later: Novelty"),
            Row(novelty(500), "accepted", requests: 2, .replaced),
            Row(novelty(503, times: 2), "down: Novelty", requests: 2, .replaced),
        ]

    private static func spell(_ outcome: DeliveryOutcome, _ row: Row) -> String {
        // The status before a reason adds no information.
        func bare(_ text: String) -> String { Int(text.prefix(3)) == nil ? text : String(text.dropFirst(4)) }
        switch outcome {
        case .accepted: return "accepted"
        case .unregistered(let since, let reason):
            return "dead: \(bare(reason))" + (since == Self.since ? ", since \(Self.since.milliseconds)" : "")
        case .retry(let pause, let reason):
            if row.outcome.hasPrefix("in") { return "in \(pause?.components.seconds ?? 0) s: \(bare(reason))" }
            return row.outcome == "later" ? "later" : "later: \(bare(reason))"
        case .unavailable(_, let reason): return "down: \(bare(reason))"
        case .misconfigured(.service, let reason): return "credential: \(bare(reason))"
        case .misconfigured(.message, let reason): return "bad request: \(bare(reason))"
        case .ambiguous: return "ambiguous"
        case .declined(let reason): return "declined: \(bare(reason))"
        }
    }

    @Test(arguments: rows) func everyAnswerHasTheConsequenceOfTheTable(_ row: Row) async throws {
        try await Rig.with { rig in
            // The connection has served a push, and its credential is known to be valid.
            #expect(await rig.send(rig.push("b2")) == .accepted(by: nil))
            let before = try await rig.apple.nextRequest()
            rig.apple.script("a1", row.answers)
            let push = rig.push()
            let outcome = await rig.send(push)
            #expect(Self.spell(outcome, row) == row.outcome)
            var connections = [before.connection]
            for _ in 0..<row.requests {
                let request = try await rig.apple.nextRequest()
                #expect(request.push?.id == push.id)
                connections.append(request.connection)
            }
            // The next request shows whether there were more, and on which connection.
            let next = await rig.send(rig.push("b2"))
            if row.stops {
                guard case .misconfigured(.service, _) = next else {
                    Issue.record("sent with a credential that is refused: \(next)")
                    return
                }
                await #expect(throws: MailboxTimeout.self) { try await rig.apple.nextRequest(within: .zero) }
            } else {
                #expect(next == .accepted(by: nil))
                let after = try await rig.apple.nextRequest()
                #expect(after.push?.deviceToken == "b2")
                connections.append(after.connection)
            }
            switch row.connection {
            case .kept: #expect(Set(connections).count == 1, "\(connections)")
            case .replaced:
                // Each repetition uses another connection, and so does the next push.
                if row.requests > 1 || !row.stops { #expect(Set(connections).count > 1, "\(connections)") }
                if row.requests == 2 { #expect(connections[1] != connections[2], "\(connections)") }
            }
            #expect(rig.count("apns.token.minted") == 0, "no answer here asks for another token")
            let alarms = rig.sink.lines.filter {
                ObservedSink.isOf("apns.refused", $0) && $0.contains("level=error")
            }
            #expect(alarms.isEmpty != row.alarms, "\(alarms)")
        }
    }

    /// Every reason of Apple's has a row.
    @Test func tableCoversEveryReason() {
        var seen: Set<String> = []
        for row in Self.rows {
            for answer in row.answers { if case .refuse(let reason, _, _) = answer { seen.insert(reason.rawValue) } }
        }
        #expect(RefusalReason.apple.map(\.rawValue).filter { !seen.contains($0) } == [])
    }

    /// Apple disconnects like this after a bad token.
    @Test func disconnectAfterABadTokenLosesNoPush() async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(.badDeviceToken))
            guard case .unregistered = await rig.send(rig.push()) else {
                Issue.record("not taken for dead")
                return
            }
            await rig.apple.sendGoAway()
            await rig.sink.lines(of: "apns.disconnected", count: 1)
            #expect(await rig.send(rig.push("b2")) == .accepted(by: nil))
            let connections = [
                try await rig.apple.nextRequest().connection, try await rig.apple.nextRequest().connection,
            ]
            #expect(connections[0] != connections[1])
        }
    }

    /// Only streams that were not processed are sent again; the others are answered.
    @Test func goAwayResendsExactlyTheStreamsAboveIt() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push("b2")) == .accepted(by: nil))
            _ = try await rig.apple.nextRequest()
            rig.apple.script("aa", .after(.seconds(1), .accept))
            rig.apple.script("cc", .silence, .accept)
            let below = await rig.begin(rig.push("aa", number: 1))
            let above = await rig.begin(rig.push("cc", number: 2))
            for _ in 0..<2 { _ = try await rig.apple.nextRequest() }
            await rig.apple.sendGoAway(replays: 1)
            #expect(await above.outcome() == .accepted(by: nil))
            #expect(await below.outcome() == .accepted(by: nil))
            #expect(rig.apple.deliveries.twice == [])
            #expect(rig.apple.acceptedCount == 3)
            #expect(below.outcomes.count == 1 && above.outcomes.count == 1)
        }
    }
}
