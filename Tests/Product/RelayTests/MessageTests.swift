import DeliveryOutcomes
import Domain
import Log
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// Codes by mail and text message. The step, the log and the audit record each outcome.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct MessageTests {
    static let kinds = [(StoreKind.memory, MessageKind.mail), (.file, .sms), (.mariadb, .mail)]

    @Test(arguments: kinds) func codeIsSentAndItsOutcomeRecorded(store: StoreKind, kind: MessageKind) async throws {
        let post = try await CodeMessageFixture(store, by: kind)
        post.messages.answer(.accepted(by: "first"))
        let entry = try await post.write()
        post.rig.time.advance(by: .milliseconds(1500))
        try await post.carry(entry)
        let sent = try #require(post.messages.sent.first)
        #expect(post.messages.sent.count == 1)
        #expect(sent.id == entry && sent.to == post.address)
        #expect(sent.website == "The shop" && sent.name == nil && sent.language == nil)
        #expect(sent.expiresAt == post.asked.expiresAt)
        guard case .code(let code) = sent.content else { throw RigFailure("no code: \(sent)") }
        #expect(sent.code == "755224" && code.purpose == .login)
        #expect(code.ip == "192.0.2.7" && code.service == "pay")
        let step = try await post.step()
        #expect(step.state == .sent && step.reason == nil && step.at == post.rig.time.now())
        #expect(try post.left() == 0)
        #expect(try post.audits("outcome = 'accepted' AND challenge_id = x'\(post.asked.challenge)'") == 1)
        let lines = post.rig.sink.drain()
        let accepted = lines.filter { $0.contains("level=info event=\(kind.rawValue).accepted") }
        #expect(accepted.count == 1 && accepted[0].contains("gateway=first"), "\(accepted)")
        #expect(accepted[0].contains("challenge=\(post.asked.challenge)") && accepted[0].contains("user=\(post.ada)"))
        #expect(accepted[0].contains("message=\(entry)") && accepted[0].contains("milliseconds=1500"))
        for line in lines { #expect(!line.contains("755224") && !line.contains(post.address), "\(line)") }
        #expect(
            post.rig.registry.number("twoefay_messages_total{kind=\"\(kind.rawValue)\",outcome=\"accepted\"}") == 1)
    }

    /// Every message has a new code, and the store identifies a sent code only by its counter.
    @Test(arguments: StoreKind.all) func everyMessageHasItsOwnCode(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        try await post.send()
        try await post.carry(try await post.write(counter: 1))
        #expect(post.messages.sent.map(\.code) == CodeMessageFixture.codes)
        #expect(try post.rig.count("SELECT counter FROM factor") == 2)
        let counters = try post.rig.count(
            "SELECT count(*) FROM sent_code WHERE challenge_id = x'\(post.asked.challenge)' AND counter IN (0, 1)")
        #expect(counters == 2)
        // The factor's counter has advanced meanwhile: no entry is written, so nothing is sent.
        try await post.carry(try await post.write(counter: 1))
        #expect(post.messages.sent.count == 2)
        #expect(try post.left() == 0)
    }

    @Test(arguments: StoreKind.all) func refusedOrUndeliverableMessageEndsTheStep(store: StoreKind) async throws {
        let outcomes: [(DeliveryOutcome, StepState, String)] = [
            (.unregistered(since: nil, reason: "550 5.1.1 no such user"), .refused, "level=warning event=mail.refused"),
            (.misconfigured(.message, reason: "no gateway"), .undeliverable, "level=error event=mail.undeliverable"),
            (.misconfigured(.service, reason: "no TLS"), .undeliverable, "level=error event=mail.undeliverable"),
            (.declined("not wanted"), .undeliverable, "level=error event=mail.undeliverable"),
        ]
        for (outcome, state, line) in outcomes {
            let post = try await CodeMessageFixture(store)
            post.messages.answer(outcome)
            try await post.send()
            let step = try await post.step()
            #expect(step.state == state)
            #expect(step.reason == outcome.reason)
            #expect(try post.left() == 0)
            #expect(try post.audits("outcome = '\(step.reason ?? "")'") == 1)
            #expect(post.rig.sink.drain().filter { $0.contains(line) }.count == 1)
            // The push is a different step.
            let reported = try await post.rig.on { [post] relay in
                try await relay.result(post.asked.challenge, to: post.shop)
            }
            #expect(reported.result == .wait && reported.steps.first?.state == .sent)
        }
    }

    @Test(arguments: StoreKind.all) func retriedMessageKeepsItsID(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        post.messages.answer(.retry(after: nil, reason: "421 busy"), .retry(after: .seconds(10), reason: "450 later"))
        let entry = try await post.write()
        try await post.carry(entry)
        #expect(try await post.step().state == .queued)
        #expect(try post.rig.text("SELECT reason FROM outbox WHERE kind = 'mail'") == "421 busy")
        try await post.rig.round(after: .seconds(1))
        #expect(post.messages.sent.count == 1)
        try await post.rig.round(after: .seconds(2))
        #expect(post.messages.sent.count == 2)
        // Not before the time that the server requested.
        try await post.rig.round(after: .seconds(9))
        #expect(post.messages.sent.count == 2)
        try await post.rig.round(after: .seconds(4))
        #expect(post.messages.sent.map(\.id) == [entry, entry, entry])
        #expect(Set(post.messages.sent.compactMap(\.code)) == ["755224"])
        #expect(try await post.step().state == .sent)
        #expect(post.rig.sink.drain().filter { $0.contains("level=warning event=mail.postponed") }.count == 2)
        #expect(post.rig.registry.number("twoefay_messages_total{kind=\"mail\",outcome=\"retry\"}") == 2)
    }

    /// The message may have been delivered. It is sent once more under the same id, and then counts as sent.
    @Test(arguments: StoreKind.all) func ambiguousMessageIsSentOnceMore(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        post.messages.answer(.retry(after: nil, reason: "busy"), .ambiguous("no answer"), .ambiguous("no answer"))
        try await post.send()
        for _ in 0..<4 { try await post.rig.round(after: .seconds(9)) }
        #expect(post.messages.sent.count == 3)
        #expect(Set(post.messages.sent.map(\.id)).count == 1)
        let step = try await post.step()
        #expect(step.state == .sent && step.reason == "no answer")
        #expect(try post.left() == 0)
    }

    /// The server is down for the whole lifetime of the code.
    @Test(arguments: StoreKind.all) func codeIsRetriedUntilItExpires(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store, living: 60)
        post.messages.answerOtherwise { _ in .retry(after: nil, reason: "no connection") }
        let end = post.asked.expiresAt
        try await post.send()
        for _ in 0..<56 { try await post.rig.round(after: .seconds(1)) }
        let step = try await post.step()
        #expect(step.state == .undeliverable && step.reason == "no connection")
        #expect(step.at <= end - .seconds(3))
        #expect(try post.left() == 0)
        #expect((4...6).contains(post.messages.sent.count), "\(post.messages.sent.count)")
        // No code is sent that has too little time left.
        for _ in 0..<10 { try await post.rig.round(after: .seconds(1)) }
        #expect((4...6).contains(post.messages.sent.count))
    }

    /// The relay was down for too long.
    @Test(arguments: StoreKind.all) func unsentMessageExpires(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        let entry = try await post.write()
        post.rig.time.advance(by: .seconds(300))
        try await post.carry(entry)
        #expect(post.messages.sent.isEmpty)
        let step = try await post.step()
        #expect(step.state == .expired && step.reason == "expired unsent")
        #expect(try post.left() == 0)
        #expect(post.rig.sink.drain().contains { $0.contains("event=mail.expired") })
    }

    /// The challenge ends while the message is in flight, or before.
    @Test(arguments: StoreKind.all) func lateMessageOutcomeChangesNothing(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        post.messages.hold()
        let entry = try await post.write()
        try await post.rig.on { relay in relay.startDelivery(entry) }
        _ = await post.messages.next()
        let approves = PhoneAnswer(approves: true, number: nil)
        #expect(try await post.rig.post(approves, post.asked.challenge, by: post.phone) == .success)
        post.messages.release()
        await post.rig.settled()
        #expect(try post.left() == 0 && post.audits() == 0)
        let lines = post.rig.sink.drain().filter { $0.contains("event=mail.") }
        #expect(lines.count == 1 && lines[0].contains("level=info event=mail.overtaken"), "\(lines)")
        try await post.carry(entry)
        #expect(post.messages.sent.count == 1)
    }

    /// The lease has ended, and the mail server has not answered yet.
    @Test(arguments: StoreKind.all) func messageInFlightIsNotResent(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        post.messages.hold()
        let entry = try await post.write()
        try await post.rig.on { relay in relay.startDelivery(entry) }
        _ = await post.messages.next()
        post.rig.time.advance(by: Relay.messageLease + .seconds(1))
        try await post.rig.on { relay in await relay.processDueEntries() }
        post.messages.release()
        await post.rig.settled()
        #expect(post.messages.sent.count == 1)
        #expect(try await post.step().state == .sent)
        #expect(try post.audits() == 1)
    }

    /// The message was accepted while the store was down: the outcome is not lost, and nothing is sent again.
    @Test func unrecordedMessageOutcomeIsNotResent() async throws {
        let place = try await StoreKind.file.fresh()
        let rig = try await RelayRig(over: place, time: TestTime())
        let post = try await CodeMessageFixture(rig, at: try await rig.website("shop", policies: ["number": "0"]))
        let isAway = Mutex(true)
        let store = try Store.watched(at: place.url, rows: RelayRig.rowAuthenticator()) {
            (steps, session) throws(SessionFailure) in
            let settles = steps.contains { $0.values.contains(.text("mail.settled")) }
            if settles, isAway.withLock({ $0 }) { throw .refused("the disk is full") }
            return try session.run(steps)
        }
        defer { store.close() }
        let relay = try rig.relay(over: store)
        let entry = try await post.write(of: relay)
        try await rig.on { _ in relay.startDelivery(entry) }
        await rig.settled()
        for isBack in [false, true] {
            isAway.withLock { $0 = !isBack }
            rig.time.advance(by: Relay.messageLease + .seconds(1))
            try await rig.on { _ in await relay.processDueEntries() }
            await rig.settled()
            #expect(try await post.step().state == (isBack ? .sent : .queued))
        }
        #expect(rig.mails.sent.count == 1)
        #expect(rig.sink.drain().filter { $0.contains("event=mail.accepted") }.count == 1)
        #expect(try post.left() == 0)
    }

    /// A relay died during an attempt. Another one sends the message under the same id, after the heartbeat has
    /// stood still.
    @Test(arguments: StoreKind.all) func messageOfADeadRelayIsSentByAnother(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        let rig = post.rig
        let dying = try rig.relay(over: rig.store)
        for relay in [dying, rig.relay] { try await rig.on { _ in await relay.runHeartbeat() } }
        let entry = try await post.write(of: dying)
        // The relay is alive, so no other takes its entry, even if it is due.
        for _ in 0..<6 {
            rig.time.advance(by: .seconds(9))
            for relay in [dying, rig.relay] { try await rig.on { _ in await relay.runHeartbeat() } }
            try await rig.on { relay in await relay.processDueEntries() }
            await rig.settled()
        }
        #expect(post.messages.sent.isEmpty)
        for _ in 0..<7 {
            #expect(post.messages.sent.isEmpty)
            rig.time.advance(by: .seconds(1))
            try await rig.on { relay in await relay.runHeartbeat() }
        }
        try await rig.round(after: .zero)
        #expect(post.messages.sent.map(\.id) == [entry])
        #expect(try await post.step().state == .sent)
    }

    /// The mail server is down from 9:00 to 9:10. Codes that were requested then are sent afterwards, each once,
    /// while they are valid. Text messages are sent meanwhile.
    @Test(arguments: StoreKind.all) func mailServerOutageLosesNoCode(store: StoreKind) async throws {
        let rig = try await RelayRig(store)
        let shop = try await rig.website("shop", policies: ["number": "0"])
        let dead = rig.time.now()
        let back = dead + .seconds(600)
        rig.mails.answerOtherwise { [time = rig.time] _ in
            time.now() < back ? .retry(after: nil, reason: "no connection") : .accepted(by: nil)
        }
        var posts: [CodeMessageFixture] = []
        for minute in 0..<10 {
            let kind: MessageKind = minute == 4 ? .sms : .mail
            let post = try await CodeMessageFixture(rig, user: "user-\(minute)", at: shop, by: kind, living: 600)
            try await post.send()
            posts.append(post)
            if kind == .sms { #expect(try await post.step().state == .sent) }
            for _ in 0..<12 { try await rig.round(after: .seconds(5)) }
        }
        for _ in 0..<15 { try await rig.round(after: .seconds(5)) }
        // The first code was requested at 9:00, and had expired when the server was back.
        #expect(try await posts[0].step().state == .undeliverable)
        for post in posts.dropFirst() {
            let settled = "outcome = 'accepted' AND challenge_id = x'\(post.asked.challenge)'"
            #expect(try post.audits(settled) == 1)
        }
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind IN ('mail', 'sms')") == 0)
        // One id for each code, whatever the number of attempts.
        for post in posts where post.kind == .mail {
            let mine = rig.mails.sent.filter { $0.expiresAt == post.asked.expiresAt }
            #expect(Set(mine.map(\.id)).count == 1 && mine.count > 3, "\(mine.count)")
        }
        #expect(rig.sink.drain().filter { $0.contains("event=mail.accepted") }.count == 8)
    }

    @Test(arguments: StoreKind.all) func confirmationCodeBelongsToNoChallenge(store: StoreKind) async throws {
        let post = try await CodeMessageFixture(store)
        try await post.carry(try await post.write(forLogin: false))
        guard case .code(let code) = try #require(post.messages.sent.first).content else { throw RigFailure("no code") }
        #expect(code.purpose == .address && code.ip == nil && code.service == nil)
        #expect(try await post.step().state == .queued)
        #expect(try post.left() == 0)
        #expect(try post.audits("challenge_id IS NULL AND user_id = x'\(post.ada)'") == 1)
    }

    /// The relay has no courier, the factor was removed, or its secret cannot be read.
    @Test(arguments: StoreKind.all) func messageWithoutContentIsUndeliverable(store: StoreKind) async throws {
        for change in ["DELETE FROM factor", "UPDATE factor SET secret = x'00'", "UPDATE factor SET digits = 3"] {
            let post = try await CodeMessageFixture(store)
            let entry = try await post.write()
            try post.rig.execute(change)
            try await post.carry(entry)
            #expect(post.messages.sent.isEmpty)
            let step = try await post.step()
            #expect(step.state == .undeliverable && step.reason == "the content no longer exists")
            #expect(try post.left() == 0)
        }
        let post = try await CodeMessageFixture(store)
        let (other, entry) = (try post.rig.another(), try await post.write())
        try post.rig.execute("UPDATE outbox SET holder = x'\(other.id.text)'")
        try await post.rig.on { _ in await other.deliver(entry) }
        let step = try await post.step()
        #expect(step.state == .undeliverable && step.reason == "no mail server is set")
    }
}
