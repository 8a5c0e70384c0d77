import EventLoop
import HTTP
import HTTP2
import Testing
import World

@testable import FakePushServices

/// Faults that affect all pushes, over real TLS and HTTP/2.
@Suite(.serialized) struct FaultPlanTests {
    @Test func everyRuleAppliesAtItsExactCount() async throws {
        try await Fixture.with { fixture in
            await fixture.apple.injectFaults(
                FaultPlan(rules: [
                    .every(4, .refuse(.serviceUnavailable)), .every(6, .refuse(.internalServerError)),
                ]))
            let provider = try await fixture.provider()
            var seen: [String] = []
            for number in 1...13 { seen.append(await provider.answer(number: number)) }
            // Both rules apply to the twelfth request. The second one waits for the thirteenth.
            let (four, six) = ("503 ServiceUnavailable", "500 InternalServerError")
            #expect(
                seen == ["200", "200", "200", four, "200", six, "200", four, "200", "200", "200", four, six])
            // A request to a scripted device is neither counted nor changed.
            fixture.apple.script("bb", .refuse(.unregistered), repeatsLast: true)
            for _ in 0..<5 { #expect(await provider.answer("bb") == "410 Unregistered") }
            // A new plan restarts the counts.
            await fixture.apple.injectFaults(FaultPlan(rules: [.every(2, .refuse(.shutdown))]))
            #expect(await provider.answer() == "200")
            #expect(await provider.answer() == "503 Shutdown")
            await fixture.apple.injectFaults(FaultPlan())
            for _ in 0..<3 { #expect(await provider.answer() == "200") }
        }
    }

    @Test func retryAfterIsSentWithTheAnswer() async throws {
        try await Fixture.with { fixture in
            fixture.apple.script("a1", .refuse(.tooManyRequests, retryAfter: .seconds(30)))
            let response = try await fixture.provider().send().get()
            #expect(response.status == 429)
            #expect(response.fields["retry-after"] == "30")
        }
    }

    @Test func periodicGoAwayStillAnswersEveryRequest() async throws {
        try await Fixture.with { fixture in
            await fixture.apple.injectFaults(FaultPlan(rules: [.every(3, .goAway())]))
            for round in 0..<2 {
                let provider = try await fixture.provider()
                for number in 0..<3 { #expect(await provider.answer(number: 3 * round + number) == "200") }
                await provider.isIn(.closed)
                // The service removes the connection a moment later.
                while try await fixture.events.next(within: .seconds(120)).isOpen {}
                #expect(await fixture.apple.connections == [])
            }
            #expect(fixture.apple.acceptedCount == 6)
        }
    }

    @Test func replayedStreamsWereNotProcessed() async throws {
        try await Fixture.with { fixture in
            fixture.apple.script("aa", .after(.milliseconds(200), .accept))
            fixture.apple.script("bb", .silence, repeatsLast: true)
            fixture.apple.script("cc", .goAway(replays: 3))
            let provider = try await fixture.provider()
            // The last two requests arrive in the read in which the GOAWAY is decided.
            let answers = await provider.answers(["aa", "bb", "bb", "cc", "a1", "bb"])
            #expect(answers == ["200", "not sent", "not sent", "not sent", "not sent", "not sent"])
            #expect(fixture.apple.acceptedCount == 1)
            #expect(try await fixture.apple.next().id == Fixture.id(1))
            for _ in 0..<4 { _ = try await fixture.apple.nextRequest() }
            await #expect(throws: MailboxTimeout.self) { try await fixture.apple.nextRequest(within: .zero) }
            await provider.isIn(.closed)
        }
    }

    @Test func answeredStreamAboveGoAwayIsNotReplayed() async throws {
        try await Fixture.with { fixture in
            fixture.apple.script("cc", .after(.milliseconds(1), .goAway(replays: 5)))
            let provider = try await fixture.provider()
            // GOAWAY cannot say that only the second request was processed, so the first is reset.
            #expect(await provider.answers(["cc", "a1"]) == ["not sent", "200"])
            #expect(fixture.apple.acceptedCount == 1)
        }
    }

    @Test func goAwayCanBeTriggered() async throws {
        try await Fixture.with { fixture in
            let (one, two) = (try await fixture.provider(), try await fixture.provider())
            #expect(await fixture.apple.connections == [1, 2])
            fixture.apple.script("bb", .silence)
            async let unanswered = one.answer("bb")
            _ = try await fixture.apple.nextRequest()
            await fixture.apple.sendGoAway(replays: 1, on: 1)
            #expect(await unanswered == "not sent")
            await one.isIn(.closed)
            #expect(await two.answer() == "200")
        }
    }

    @Test(arguments: [
        (ErrorCode.refusedStream, false, "not sent"), (.internalError, false, "ambiguous"),
        (.internalError, true, "ambiguous"), (.cancel, true, "ambiguous"),
    ]) func everySecondStreamIsReset(code: ErrorCode, accepts: Bool, outcome: String) async throws {
        try await Fixture.with { fixture in
            await fixture.apple.injectFaults(FaultPlan(rules: [.every(2, .reset(code, accepts: accepts))]))
            let provider = try await fixture.provider()
            for number in stride(from: 1, through: 7, by: 2) {
                #expect(await provider.answer(number: number) == "200")
                #expect(await provider.answer(number: number + 1) == outcome)
            }
            #expect(fixture.apple.acceptedCount == (accepts ? 8 : 4))
            #expect(fixture.apple.deliveries.unanswered == (accepts ? Set([2, 4, 6, 8].map(Fixture.id)) : []))
        }
    }

    @Test func duplicateDeliveryIsCounted() async throws {
        try await Fixture.with(keeping: .counts) { fixture in
            fixture.apple.script("bb", .lost, .accept)
            let provider = try await fixture.provider()
            for number in 1...3 { #expect(await provider.answer(number: number) == "200") }
            #expect(await provider.answer("bb", number: 4, deadline: .milliseconds(50)) == "ambiguous")
            #expect(await provider.answer("bb", number: 4) == "200")
            var expected = Deliveries()
            expected.accepted = 5
            expected.ids = 4
            expected.twice = [Fixture.id(4)]
            expected.unanswered = [Fixture.id(4)]
            #expect(fixture.apple.deliveries == expected)
            await #expect(throws: MailboxTimeout.self) { try await fixture.apple.next(within: .zero) }
        }
    }

    @Test func connectionsCanBeResetAndFrozen() async throws {
        try await Fixture.with { fixture in
            fixture.apple.script("bb", .cut(accepts: true))
            fixture.apple.script("cc", .freeze())
            let one = try await fixture.provider()
            #expect(await one.answer("bb") == "ambiguous")
            await one.isIn(.closed)
            let (two, three) = (try await fixture.provider(), try await fixture.provider())
            async let unanswered = two.answer("cc", number: 2)
            _ = try await fixture.apple.nextRequest()
            _ = try await fixture.apple.nextRequest()
            async let ping = two.ping()
            // The other connections stay open. Their answers show that the ping remains unanswered.
            #expect(await three.ping() != nil)
            #expect(await three.answer(number: 3) == "200")
            #expect(await fixture.apple.connections == [2, 3])
            await fixture.apple.cut(connection: 2)
            #expect(await unanswered == "ambiguous")
            #expect(await ping == nil)
            #expect(fixture.apple.acceptedCount == 2)
        }
    }

    @Test func selectedConnectionsAreHalfOpen() async throws {
        try await Fixture.with { fixture in
            let one = try await fixture.provider()
            await fixture.apple.injectFaults(FaultPlan(frozen: [1, 3]))
            let two = try await fixture.provider()
            async let ping = one.ping()
            #expect(await two.ping() != nil)
            #expect(await two.answer() == "200")
            let three = try await fixture.disconnected(timeout: .milliseconds(300))
            #expect(await three.connect() == .timedOut)
            await fixture.apple.cut(connection: 1)
            #expect(await ping == nil)
        }
    }

    @Test func oneStreamIsAllowedUntilTheFirstValidRequest() async throws {
        try await Fixture.with { fixture in
            await fixture.apple.injectFaults(FaultPlan(streams: .afterProof(500)))
            fixture.apple.script("bb", .refuse(.invalidProviderToken))
            let provider = try await fixture.provider()
            #expect(await provider.streamLimit == 1)
            #expect(await provider.answer("bb") == "403 InvalidProviderToken")
            #expect(await provider.streamLimit == 1)
            #expect(await provider.answer() == "200")
            // The answer and the new SETTINGS were sent together.
            #expect(await provider.ping() != nil)
            #expect(await provider.streamLimit == 500)
        }
    }

    @Test func streamLimitChangesWhileStreamsAreOpen() async throws {
        try await Fixture.with { fixture in
            await fixture.apple.injectFaults(FaultPlan(streams: .changing([3, 1, nil], every: 4)))
            let provider = try await fixture.provider()
            var limits = [await provider.streamLimit]
            for round in 0..<3 {
                #expect(await provider.answers(4, from: round * 4) == [String](repeating: "200", count: 4))
                #expect(await provider.ping() != nil)
                limits.append(await provider.streamLimit)
            }
            #expect(limits == [3, 1, ClientOptions().maxStreams, 3])
            await fixture.apple.announce(streams: 7)
            #expect(await provider.ping() != nil)
            #expect(await provider.streamLimit == 7)
        }
    }

    @Test func streamLimitCanBeZero() async throws {
        try await Fixture.with { fixture in
            let provider = try await fixture.provider()
            await fixture.apple.announce(streams: 0)
            #expect(await provider.ping() != nil)
            #expect(await provider.streamLimit == 0)
            async let answers = provider.answers(20)
            #expect(await provider.ping() != nil)
            #expect(fixture.apple.acceptedCount == 0)
            await fixture.apple.injectFaults(
                FaultPlan(
                    streams: StreamLimits(steps: [.init(0, duration: .milliseconds(50)), .init(5, requests: 100)])))
            #expect(await answers == [String](repeating: "200", count: 20))
            #expect(await provider.streamLimit == 5)
        }
    }

    @Test func connectionBehaviorsAreApplied() async throws {
        try await Fixture.with { fixture in
            fixture.apple.setConnectionBehavior(.cut, .goAway, .serve)
            #expect(try await fixture.disconnected().connect() != nil)
            let wentAway = try await fixture.disconnected()
            _ = await wentAway.connect()
            #expect(await wentAway.answer() == "not sent")
            #expect(try await fixture.provider().answer() == "200")
            #expect(fixture.apple.acceptedCount == 1)
        }
    }

    @Test(arguments: TLSFault.allCases) func wrongCertificatesAreShown(fault: TLSFault) async throws {
        try await Fixture.with { fixture in
            fixture.apple.setConnectionBehavior(.tls(try fixture.team.tls(fault)))
            let certificate = try fixture.team.issueProvider(at: fixture.loop.time.now())
            let failure = try #require(await fixture.disconnected(certificate: certificate).connect())
            let words: String
            switch fault {
            case .wrongName: words = "IP address mismatch"
            case .expired: words = "certificate has expired"
            case .foreignAuthority: words = "unable to get local issuer certificate"
            case .refusesCertificate: words = "alert"
            }
            #expect(failure.description.contains(words), "\(failure)")
            #expect(try await fixture.provider(certificate: certificate).answer() == "200")
        }
    }

    @Test(arguments: [true, false]) func hangingConnectionNeverFinishesItsHandshake(inTheHandshake: Bool) async throws {
        try await Fixture.with { fixture in
            fixture.apple.setConnectionBehavior(inTheHandshake ? .hang : .freeze, repeatsLast: true)
            let hanging = try await fixture.disconnected(timeout: .milliseconds(300))
            #expect(await hanging.connect() == .timedOut)
            fixture.apple.setConnectionBehavior(.serve)
            #expect(try await fixture.provider().answer() == "200")
        }
    }
}
