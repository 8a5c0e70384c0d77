import Bytes
import Curl
import DeliveryOutcomes
import Domain
import EventLoop
import GSM
import Log
import Relay
import SMS
import Synchronization
import Templates
import TestSupport
import Testing
import World

@testable import Couriers

@Suite struct SMSCourierTests {
    private final class Ledger: SMSUsageStore {
        let noted = Mutex<[SMSUsage]>([])
        func addUsage(_ sent: SMSUsage) async throws(StoreFailure) { noted.withLock { $0.append(sent) } }
    }

    private static let german = NumberPrefix.country(of: "+49")
    private let time = TestTime()
    private let ledger = Ledger()

    private func message(
        to number: String = "+4915112345678", _ content: Message.Content? = nil, language: String? = nil,
        left: Duration = .seconds(300)
    ) throws -> Message {
        let code = Message.Code(
            digits: Secret(utf8: "123456"), purpose: .login, service: "VPN", ip: "192.0.2.1", place: nil)
        return Message(
            id: try #require(OutboxEntryID([UInt8](repeating: 7, count: 16))), to: number, website: "The shop",
            name: nil,
            language: language, content: content ?? .code(code), expiresAt: time.now() + left)
    }

    /// Sends a message through one gateway for German numbers, and returns the outcome.
    private func send(
        _ message: Message, to gateway: TestGateway, after: @escaping @Sendable (SMSCourier) -> Void = { _ in }
    ) async throws -> DeliveryOutcome {
        let dialect = GenericHTTPDialect(
            method: "POST", url: try RequestTemplate(gateway.url + "/{id}"), contentType: "text/plain",
            body: try RequestTemplate("{to} {text}"))
        let exchange = SMSDispatcher(
            SMSDispatcher.Setup(
                [HTTPGateway(name: "one", dialect: dialect)],
                routing: SMSRouting([.init(gateway: "one", tariff: [Self.german: 75_000])])), time: time,
            log: Log(sink: MemorySink()))
        let courier = SMSCourier(
            exchange, limits: SMSLimits(allowed: [Self.german]), catalog: CurrentCatalog(), usage: ledger, time: time,
            log: Log(sink: MemorySink()), spawn: { work in EventLoop.current?.spawn(work) })
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        defer { group.stopAndJoin() }
        let outcome = await group.loops[0].perform {
            let outcome = await courier.send(message)
            after(courier)
            return outcome
        }
        // The work that the courier has posted runs before this.
        await group.loops[0].perform {}
        await courier.close()
        return outcome
    }

    @Test func codeSMSUsesTheUsersLanguage() async throws {
        let gateway = try await TestGateway { _ in .status(200) }
        for language in ["de-AT", "en"] {
            #expect(try await send(message(language: language), to: gateway) == .accepted(by: "one"))
        }
        let bodies = gateway.asked.map(\.body)
        #expect(
            bodies.allSatisfy { $0.hasPrefix("+4915112345678 ") && $0.contains("123456") && $0.contains("The shop") })
        #expect(bodies.count == 2 && bodies[0] != bodies[1])
        // Every attempt has the id of the outbox entry.
        #expect(gateway.asked.allSatisfy { $0.path == "/" + String(repeating: "07", count: 16) })
        let sent = SMSUsage(try message().id, at: time.now(), prefix: Self.german, parts: 1, cost: 75_000)
        #expect(ledger.noted.withLock { $0 } == [sent, sent])
    }

    /// The gateway bills an ambiguous message, whether or not its answer arrives.
    @Test func ambiguousSMSCountedAsSentIsRecorded() async throws {
        let gateway = try await TestGateway { _ in .hangUp }
        let message = try message()
        guard case .ambiguous(_) = try await send(message, to: gateway, after: { $0.countsAsSent(message) }) else {
            Issue.record("it is known")
            return
        }
        #expect(
            ledger.noted.withLock { $0 } == [
                SMSUsage(message.id, at: time.now(), prefix: Self.german, parts: 1, cost: 75_000)
            ])
    }

    @Test func numbersOutsideTheAllowedPrefixesGetNoSMS() async throws {
        let gateway = try await TestGateway { _ in .status(200) }
        let outcome = try await send(message(to: "+12025550123"), to: gateway)
        #expect(outcome == .unregistered(since: nil, reason: "sms.allow does not allow numbers of that country"))
        #expect(gateway.asked.isEmpty && ledger.noted.withLock { $0.isEmpty })
    }

    @Test func expiredSMSAndNonCodesAreNotSent() async throws {
        let gateway = try await TestGateway { _ in .status(200) }
        let announcement = Message.Content.announcement(.userFrozen, device: nil, at: time.now())
        #expect(
            try await send(message(announcement), to: gateway)
                == .misconfigured(.message, reason: "only codes are sent as text messages"))
        #expect(try await send(message(left: .zero), to: gateway) == .retry(after: nil, reason: "expired unsent"))
        #expect(gateway.asked.isEmpty)
    }

    @Test func rejectedSMSCostsNothing() async throws {
        let gateway = try await TestGateway { _ in .status(503) }
        guard case .retry(after: _, reason: _) = try await send(message(), to: gateway) else {
            Issue.record("it was taken")
            return
        }
        #expect(ledger.noted.withLock { $0.isEmpty })
    }
}
