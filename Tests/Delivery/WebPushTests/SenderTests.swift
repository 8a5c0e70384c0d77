import Bytes
import Crypto
import Curl
import DeliveryOutcomes
import EventLoop
import HTTP
import JSON
import Log
import TestSupport
import Testing
import World

@testable import WebPush

/// A sender on a separate loop, with the settings to reach services on this machine.
private struct Rig: Sendable {
    let group: LoopGroup
    let sender: WebPushSender
    let key: P256PrivateKey

    let sink = MemorySink()

    init(
        trusting service: TestPushService, allowing ranges: [String] = ["127.0.0.0/8", "::1"],
        deadline: Duration = .seconds(120)
    ) throws {
        group = try LoopGroup.start(count: 1, time: SystemTime())
        key = try P256PrivateKey.generate()
        var options = WebPushSender.Options()
        options.deadline = deadline
        options.client.connectTimeout = .seconds(120)
        options.client.addresses = AddressGuard(allowing: try ranges.map { try #require(AddressRange($0)) })
        options.client.extraTrust = try service.certificates.websites.certificatePEM()
        let log = Log(sink: sink)
        sender = WebPushSender(
            vapid: VAPID(key: key, contact: "mailto:op@example.com", time: SystemTime(), log: log),
            time: SystemTime(), randomness: SystemRandomness(), log: log, options: options)
    }

    func send(
        _ subscriber: TestSubscriber, _ text: String = "who asks", for life: Duration = .seconds(300),
        by end: Duration? = nil
    ) async -> DeliveryOutcome {
        let message = WebPushMessage(
            subscription: subscriber.subscription, text: Array(text.utf8), topic: "0123456789abcdef",
            expiresAt: SystemTime().now() + life, deliverBy: end.map { SystemTime().now() + $0 })
        return await group.loops[0].perform { [sender] in await sender.send(message) }
    }

    func end() {
        sender.close()
        group.stopAndJoin()
    }
}

@Suite(.timeLimit(.minutes(5))) struct WebPushSenderTests {
    @Test func messageIsReadableOnlyByItsSubscriber() async throws {
        let service = try await TestPushService.start()
        let rig = try Rig(trusting: service)
        defer { rig.end() }
        let (one, other) = (
            try TestSubscriber(service.origin() + "/one"), try TestSubscriber(service.origin() + "/other?a=b")
        )
        #expect(await rig.send(one, "for one") == .accepted(by: nil))
        #expect(await rig.send(other, "for another", for: .seconds(60)) == .accepted(by: nil))
        let received = await service.received(2)
        #expect(service.faults == [])
        #expect(received.map(\.path) == ["/one", "/other"])
        #expect(received.map(\.urgency) == ["high", "high"])
        #expect(received.map(\.topic) == ["0123456789abcdef", "0123456789abcdef"])
        #expect(received[0].ttl <= 300 && received[0].ttl > 60 && received[1].ttl <= 60)
        #expect(received[0].claims["aud"]?.string == service.origin())
        #expect(received[0].authorization.hasSuffix("k=" + Base64URL.encode(rig.key.publicKey.x963)))
        // The same VAPID token for the same service.
        #expect(received[0].authorization == received[1].authorization)
        #expect(one.open(received[0]) == Array("for one".utf8))
        #expect(other.open(received[1]) == Array("for another".utf8))
        #expect(other.open(received[0]) == nil)
        #expect(received[0].body.count == received[1].body.count)
    }

    @Test func refusalAffectsOnlyItsSubscription() async throws {
        let service = try await TestPushService.start()
        let rig = try Rig(trusting: service)
        defer { rig.end() }
        service.script("/strict", .respond(403))
        let strict = try TestSubscriber(service.origin() + "/strict")
        #expect(await rig.send(strict) == .declined("403"))
        // No request for a while.
        #expect(await rig.send(strict) == .declined("403"))
        #expect(service.count == 1)
        // Another subscription at the same service.
        #expect(await rig.send(try TestSubscriber(service.origin() + "/kind")) == .accepted(by: nil))
        #expect(service.count == 2)
    }

    @Test func silentServiceDelaysNoOther() async throws {
        let service = try await TestPushService.start()
        let rig = try Rig(trusting: service)
        service.script("/silent", .silence)
        let silent = try TestSubscriber(service.origin() + "/silent")
        async let pending = rig.send(silent)
        _ = await service.received(1)
        // Another host name uses another connection; the same host name uses the same connection.
        #expect(await rig.send(try TestSubscriber(service.origin("127.0.0.1") + "/a")) == .accepted(by: nil))
        #expect(await rig.send(try TestSubscriber(service.origin() + "/b")) == .accepted(by: nil))
        // The push has waited until now, and may have been accepted.
        rig.sender.close()
        #expect(await pending == .ambiguous("no answer"))
        rig.group.stopAndJoin()
    }

    @Test("the sender's deadline, or the message's", arguments: [true, false]) func deadlineIsRespected(_ isIts: Bool)
        async throws
    {
        let service = try await TestPushService.start()
        service.script("/", .silence)
        let rig = try Rig(trusting: service, deadline: .seconds(isIts ? 1 : 120))
        defer { rig.end() }
        switch await rig.send(try TestSubscriber(service.origin() + "/x"), by: isIts ? nil : .seconds(1)) {
        // The progress within a second depends on the machine.
        case .ambiguous, .retry: break
        case let outcome: Issue.record("\(outcome)")
        }
    }

    @Test("an internal address gets no request", arguments: ["localhost", "127.0.0.1"]) func privateEndpointIsRefused(
        host: String
    )
        async throws
    {
        let service = try await TestPushService.start()
        let rig = try Rig(trusting: service, allowing: [])
        defer { rig.end() }
        #expect(await rig.send(try TestSubscriber(service.origin(host) + "/x")) == .declined("not reached"))
        let reported = rig.sink.lines.filter { $0.contains("event=webpush.unanswered") }
        #expect(
            reported.count == 1 && reported.allSatisfy { $0.contains("loopback") && !$0.contains("/x") }, "\(reported)")
        #expect(service.count == 0)
    }

    @Test func expiredMessageIsNotSent() async throws {
        let service = try await TestPushService.start()
        let rig = try Rig(trusting: service)
        defer { rig.end() }
        let subscriber = try TestSubscriber(service.origin() + "/x")
        let unsent = DeliveryOutcome.retry(after: .seconds(1), reason: "expired unsent")
        #expect(await rig.send(subscriber, for: .seconds(-1)) == unsent)
        #expect(await rig.send(subscriber, by: .seconds(-1)) == unsent)
        #expect(service.count == 0)
    }
}

@Suite struct WebPushAnswerTests {
    private let now = Timestamp(rfc3339: "2026-11-21T21:00:00.000Z") ?? Timestamp(seconds: 0)

    private func outcome(_ status: Int, _ retryAfter: String? = nil) -> DeliveryOutcome {
        let fields = Fields(retryAfter.map { [Fields.Field("retry-after", $0)] } ?? [])
        return WebPushAnswer.outcome(status, fields, sentAt: now - .seconds(1), now: now)
    }

    @Test func statusesMapToOutcomes() {
        for status in [200, 201, 202] { #expect(outcome(status) == .accepted(by: nil)) }
        for status in [404, 410] {
            #expect(outcome(status) == .unregistered(since: now - .seconds(1), reason: "\(status)"))
        }
        for status in [400, 401, 403, 405, 413, 415] { #expect(outcome(status) == .declined("\(status)")) }
        for status in [500, 502, 503, 504] {
            #expect(outcome(status) == .unavailable(after: .seconds(5), reason: "\(status)"))
        }
        #expect(outcome(429) == .retry(after: .seconds(20), reason: "429"))
        guard case .declined = outcome(302) else {
            Issue.record("a redirect is nothing to follow")
            return
        }
    }

    @Test(
        "Retry-After",
        arguments: [
            ("7", 7), ("0", 1), ("600", 600), ("601", 600), ("99999999999999999999", 600),
            ("Sat, 21 Nov 2026 21:00:30 GMT", 30), ("Sat, 21 Nov 2026 20:00:00 GMT", 1),
            ("Sun, 22 Nov 2026 21:00:00 GMT", 600),
            // An unknown form is ignored.
            ("", 20), ("-7", 20), ("7.5", 20), ("soon", 20), ("Sat, 21 Nov 2026 21:00:30", 20),
            ("Sat, 31 Feb 2026 21:00:30 GMT", 20), ("2026-11-21T21:00:30Z", 20),
        ])
    func retryAfterIsBounded(_ text: String, _ seconds: Int) {
        #expect(outcome(429, text) == .retry(after: .seconds(seconds), reason: "429"))
    }

    private func outcome(
        _ cause: TransferFailure.Cause, arrived: Bool = false, status: Int? = nil, retryAfter: String? = nil
    ) -> DeliveryOutcome {
        let fields = Fields(retryAfter.map { [Fields.Field("retry-after", $0)] } ?? [])
        return WebPushAnswer.outcome(
            TransferFailure(cause, mayHaveArrived: arrived, status: status, fields: fields, "why"), sentAt: now,
            now: now)
    }

    @Test func transferFailuresMapToOutcomes() {
        for cause in [TransferFailure.Cause.deadline, .broken, .tooLarge] {
            #expect(outcome(cause, arrived: true) == .ambiguous("no answer"))
        }
        for cause in [TransferFailure.Cause.tooLarge, .broken, .deadline, .cancelled] {
            #expect(outcome(cause, arrived: true, status: 201) == .accepted(by: nil))
            #expect(
                outcome(cause, arrived: true, status: 503, retryAfter: "7")
                    == .unavailable(after: .seconds(7), reason: "503"))
        }
        for cause in [TransferFailure.Cause.deadline, .unreachable, .unknownHost] {
            #expect(outcome(cause) == .unavailable(after: .seconds(5), reason: "not reached"))
        }
        #expect(outcome(.busy) == .retry(after: .seconds(1), reason: "busy"))
        // The website must not be able to distinguish these from a name that does not exist.
        #expect(outcome(.refusedAddress) == .declined("not reached"))
        #expect(outcome(.untrusted) == .declined("not reached"))
    }

    @Test func refusalsAreRememberedWithinBounds() {
        var refusals = RefusedSubscriptions()
        let start = Instant(nanoseconds: 0)
        let areNew = (0..<2).map { _ in refusals.distrusted("a", "403", at: start) }
        #expect(areNew == [true, false])
        func reasons(_ origin: String, _ seconds: Int...) -> [String?] {
            seconds.map { refusals.reason(origin, at: start + .seconds($0)) }
        }
        // After the pause one push is a probe, and the others still wait.
        let reported = reasons("a", 0, 29, 30, 31) + reasons("b", 0)
        #expect(reported == ["403", "403", nil, "403", nil])
        refusals.trusted("a")
        let trusted = reasons("a", 31)
        #expect(trusted == [nil])
        let last = RefusedSubscriptions.remembered
        for number in 0...last { _ = refusals.distrusted("\(number)", "403", at: start + .seconds(number)) }
        let left = reasons("0", last) + reasons("\(last)", last)
        #expect(left == [nil, "403"])
    }
}
