import DeliveryOutcomes
import Domain
import EventLoop
import GSM
import Log
import Synchronization
import TestSupport
import Testing
import World

@testable import SMS

@Suite struct SMSDispatcherTests {
    private static let routes = ["first", "second"].map { SMSRouting.Route(gateway: $0) }

    private func pair(
        _ fixture: Fixture, _ answer: @escaping @Sendable (SMSMessage) async -> GatewayOutcome
    ) -> (ScriptedGateway, ScriptedGateway, SMSDispatcher) {
        let (first, second) = (ScriptedGateway("first", answer), ScriptedGateway("second"))
        return (first, second, fixture.exchange([first, second], Self.routes))
    }

    @Test(
        "a gateway that does not accept the message leaves it to the next",
        arguments: [
            GatewayOutcome.down("x"), .busy(nil, "x"), .busy(.seconds(10), "x"), .full("x"), .fault("x"),
            .unsuited("x"),
        ])
    func unacceptedMessageGoesToTheNextGateway(_ outcome: GatewayOutcome) async throws {
        try await Fixture.with { fixture in
            let (first, second, exchange) = pair(fixture) { _ in outcome }
            let report = await fixture.send(message(), over: exchange)
            #expect(report.outcome == .accepted(by: "second") && report.gateway == "second")
            #expect(report.attempts.map(\.outcome) == [outcome, .accepted])
            #expect(first.got == [message().id] && second.got == [message().id])
        }
    }

    /// Many messages of this relay at once are no fault of the gateway.
    @Test func fullGatewayStaysInUse() async throws {
        try await Fixture.with { fixture in
            let (first, _, exchange) = pair(fixture) { _ in .full("too many open requests") }
            for _ in 0..<10 { #expect(await fixture.send(message(), over: exchange).gateway == "second") }
            #expect(exchange.openCircuits.isEmpty)
            first.answer { _ in .accepted }
            #expect(await fixture.send(message(), over: exchange).gateway == "first")
        }
    }

    @Test func refusedNumberIsNotTriedElsewhere() async throws {
        try await Fixture.with { fixture in
            let (_, second, exchange) = pair(fixture) { _ in .refused("no such number") }
            #expect(
                await fixture.send(message(), over: exchange).outcome
                    == .unregistered(since: nil, reason: "first: no such number"))
            #expect(second.got.isEmpty)
        }
    }

    @Test func messageWithoutAnAcceptingGatewayIsUndeliverable() async throws {
        try await Fixture.with { fixture in
            let (first, second, exchange) = pair(fixture) { _ in .down("x") }
            second.answer { _ in .unsuited("y") }
            #expect(
                await fixture.send(message(), over: exchange).outcome
                    == .retry(after: nil, reason: "first: x; second: y")
            )
            first.answer { _ in .fault("z") }
            #expect(
                await fixture.send(message(), over: exchange).outcome
                    == .misconfigured(.message, reason: "first: z; second: y"))
        }
        try await Fixture.with { fixture in
            let german = SMSRouting.Route(gateway: "first", prefixes: [NumberPrefix.country(of: "+49")])
            let exchange = fixture.exchange([ScriptedGateway("first")], [german])
            let outcome = await fixture.send(message(1, to: "+12025550123"), over: exchange).outcome
            #expect(outcome == .misconfigured(.message, reason: "no gateway accepts numbers of that country"))
        }
    }

    @Test func openCircuitsReturnRetryAfter() async throws {
        try await Fixture.with { fixture in
            let (_, second, exchange) = pair(fixture) { _ in .fault("x") }
            second.answer { _ in .busy(.seconds(60), "y") }
            _ = await fixture.send(message(1), over: exchange)
            fixture.time.advance(by: .seconds(1))
            let report = await fixture.send(message(2), over: exchange)
            #expect(report.attempts.isEmpty)
            guard case .retry(after: .seconds(4), reason: _) = report.outcome else {
                Issue.record("\(report.outcome)")
                return
            }
            #expect(exchange.fault != nil && exchange.openCircuits == ["first", "second"])
            // A gateway whose pause is over counts as usable, because a message has to arrive as its probe.
            fixture.time.advance(by: .seconds(4))
            #expect(exchange.fault == nil && exchange.openCircuits == ["second"])
        }
    }

    @Test func replacedGatewaysGetLaterMessages() async throws {
        try await Fixture.with { fixture in
            let (old, kept, exchange) = pair(fixture) { _ in .ambiguous("no answer") }
            #expect(await fixture.send(message(1), over: exchange).outcome == .ambiguous("first: no answer"))
            kept.answer { _ in .fault("x") }
            old.answer { _ in .unsuited("y") }
            _ = await fixture.send(message(2), over: exchange)
            #expect(exchange.openCircuits == ["second"])

            let new = ScriptedGateway("first")
            exchange.adopt(SMSDispatcher.Setup([new, kept], routing: SMSRouting(Self.routes)))
            #expect(await fixture.send(message(3), over: exchange).outcome == .accepted(by: "first"))
            #expect(new.got == [message(3).id] && old.got.count == 2)
            // A gateway that remains in the settings keeps the state of its circuit breaker.
            #expect(exchange.openCircuits == ["second"])

            // The first gateway may have this message, so no other gateway may send it, whichever gateways exist
            // now.
            exchange.adopt(SMSDispatcher.Setup([kept], routing: SMSRouting([Self.routes[1]])))
            guard case .ambiguous(_) = await fixture.send(message(1), over: exchange).outcome else {
                Issue.record("it was given to another gateway")
                return
            }
            #expect(kept.got == [message(2).id])
        }
    }

    @Test func messageInFlightStaysWithItsGateway() async throws {
        try await Fixture.with { fixture in
            let began = Mutex<CheckedContinuation<Void, Never>?>(nil)
            let goOn = Mutex<CheckedContinuation<Void, Never>?>(nil)
            let old = ScriptedGateway("first") { _ in
                await withCheckedContinuation { hold in
                    goOn.withLock { $0 = hold }
                    began.withLock { $0 }?.resume()
                }
                return .down("slow")
            }
            let (exchange, new) = (fixture.exchange([old], [Self.routes[0]]), ScriptedGateway("first"))
            let report = Mutex<SMSReport?>(nil)
            await withCheckedContinuation { (ready: CheckedContinuation<Void, Never>) in
                began.withLock { $0 = ready }
                fixture.loop.post {
                    fixture.loop.spawn {
                        let done = await exchange.send(message(1), left: .seconds(300))
                        report.withLock { $0 = done }
                    }
                }
            }
            exchange.adopt(SMSDispatcher.Setup([new], routing: SMSRouting([Self.routes[0]])))
            #expect(await fixture.send(message(2), over: exchange).outcome == .accepted(by: "first"))
            await fixture.loop.perform { goOn.withLock { $0 }?.resume() }
            while report.withLock({ $0 }) == nil { await fixture.loop.perform {} }
            // An outcome of the old gateway says nothing about the new one.
            #expect(report.withLock { $0 }?.outcome == .retry(after: nil, reason: "first: slow"))
            for number in 3...5 { _ = await fixture.send(message(number), over: exchange) }
            #expect(old.got == [message(1).id] && new.got.count == 4 && exchange.openCircuits.isEmpty)
        }
    }

    /// The first gateway is down from 9:00 to 9:10.
    @Test func gatewayOutageIsBridgedByTheSecondGateway() async throws {
        try await Fixture.with { fixture in
            let nine = fixture.time.instant()
            let isDead = Mutex(true)
            let (first, second, exchange) = pair(fixture) { _ in
                isDead.withLock { $0 } ? .down("nobody listens") : .accepted
            }
            var sent = 0
            // One message a second, for half an hour.
            for second in 0..<1800 {
                if second == 600 { isDead.withLock { $0 = false } }
                fixture.time.advance(to: nine + .seconds(Int64(second)))
                sent += 1
                let outcome = await fixture.send(message(sent), over: exchange).outcome
                guard case .accepted(_) = outcome else {
                    Issue.record("\(second): \(outcome)")
                    return
                }
            }
            let before = Set((0..<600).map { message($0 + 1).id })
            // Each message was sent by exactly one gateway that accepted it.
            let late = first.got.filter { !before.contains($0) }
            #expect(second.got.count + late.count == sent && Set(second.got).isDisjoint(with: late))
            // During the outage it got probes: three messages, and then one after 5, 10, 20, 40, 80, 160 and 300 s.
            #expect(first.got.count { before.contains($0) } == 9)
            // It is back within five minutes, and then gets all messages again.
            #expect(late.count >= 900 && late.last == message(sent).id)
            #expect(fixture.sink.lines.count { $0.contains("event=sms.gateway.paused") } == 1)
            #expect(fixture.sink.lines.count { $0.contains("event=sms.gateway.back") } == 1)
        }
    }

    @Test func hangingGatewayDelaysMessagesOnlyBriefly() async throws {
        try await Fixture.with { fixture in
            let time = fixture.time
            let (first, second, exchange) = pair(fixture) { _ in
                time.advance(by: .seconds(10))
                return .ambiguous("no answer in time")
            }
            for number in 1...3 {
                guard case .ambiguous(_) = await fixture.send(message(number), over: exchange).outcome else {
                    Issue.record("\(number)")
                    return
                }
            }
            // From here on its circuit breaker is open.
            for number in 4...20 {
                #expect(await fixture.send(message(number), over: exchange).outcome == .accepted(by: "second"))
            }
            #expect(first.got.count == 3 && second.got.count == 17)
        }
    }

    /// Three messages at once have an ambiguous outcome, which opens the circuit breaker.
    @Test func ambiguousMessageIsRetriedAtTheSameGateway() async throws {
        try await Fixture.with { fixture in
            let (first, second, exchange) = pair(fixture) { _ in .ambiguous("no answer in time") }
            for number in 1...3 { _ = await fixture.send(message(number), over: exchange) }
            fixture.time.advance(by: .seconds(1))
            let reason = "first: no answer before, and now: circuit breaker open"
            for number in 1...3 {
                let outcome = await fixture.send(message(number), over: exchange).outcome
                #expect(outcome == .retry(after: .seconds(4), reason: reason))
            }
            fixture.time.advance(by: .seconds(4))
            first.answer { _ in .down("not reached") }
            let outcome = await fixture.send(message(1), over: exchange).outcome
            #expect(outcome == .retry(after: .seconds(10), reason: "first: no answer before, and now: not reached"))
            fixture.time.advance(by: .seconds(10))
            first.answer { _ in .accepted }
            for number in 1...3 {
                #expect(await fixture.send(message(number), over: exchange).outcome == .accepted(by: "first"))
            }
            // Each was sent twice. The second gateway got none.
            #expect(first.got.count == 7 && second.got.isEmpty)
        }
    }

    @Test func expiredMessageIsNotSent() async throws {
        try await Fixture.with { fixture in
            let time = fixture.time
            let (first, second, exchange) = pair(fixture) { _ in
                time.advance(by: .seconds(25))
                return .down("not reached")
            }
            guard case .retry(after: _, reason: _) = await fixture.send(message(1), over: exchange).outcome else {
                Issue.record("it was sent")
                return
            }
            #expect(first.got.count == 1 && second.got.isEmpty)
            _ = await fixture.send(message(2), over: exchange, left: .milliseconds(500))
            #expect(first.got.count == 1 && second.got.isEmpty)
        }
    }

    @Test func segmentsAndCostsAreReported() async throws {
        final class Seen: SMSObserver {
            let sent = Mutex<[String]>([])
            let tried = Mutex<[String]>([])
            func tried(gateway: String, _ outcome: GatewayOutcome.Word, after: Duration) {
                tried.withLock { $0.append("\(gateway) \(outcome.rawValue)") }
            }
            func sent(gateway: String, parts: Int, cost: Int64) {
                sent.withLock { $0.append("\(gateway) \(parts) \(cost)") }
            }
        }
        try await Fixture.with { fixture in
            let seen = Seen()
            let gateways = [ScriptedGateway("first") { _ in .down("x") }, ScriptedGateway("second")]
            let exchange = fixture.exchange(
                gateways, [.init(gateway: "first"), .init(gateway: "second", tariff: [.all: 75_000])], observer: seen)
            let report = await fixture.send(
                message(1, String(repeating: "x", count: 161)), over: exchange)
            #expect(report.parts == 2 && report.cost == 150_000)
            #expect(seen.sent.withLock { $0 } == ["second 2 150000"])
            #expect(seen.tried.withLock { $0 } == ["first down", "second accepted"])
        }
    }

    @Test func smsMessageDoesNotPrintItsText() {
        let one = message(1, "code 123456")
        #expect(!"\(one)".contains("123456") && !String(reflecting: one).contains("123456"))
        #expect(!"\(one)".contains(one.to))
    }
}
