import Bytes
import JSON
import Synchronization
import TestSupport
import Testing
import TwoefayClient
import Webhooks
import World

/// `TwoefayRelay` with a real relay and phone: the code of the package's README, and the conversations
/// that a suite of cases cannot have.
@Suite("TwoefayRelay", .timeLimit(.minutes(15)), .mayBlock) struct WebsiteTests {
    /// A carrier that reports the number and the challenge of each login.
    private struct ObservedCarrier: Carrier {
        let carrier: HTTP2Carrier
        let logins: AsyncStream<(challenge: String, number: String)>
        private let continuation: AsyncStream<(challenge: String, number: String)>.Continuation

        init(_ carrier: HTTP2Carrier) {
            self.carrier = carrier
            (logins, continuation) = AsyncStream.makeStream()
        }

        func send(_ call: RelayCall) async throws(CallFault) -> RelayReply {
            let reply = try await carrier.send(call)
            if call.path == "/login", let answer = (try? JSONReader.read(reply.body))?.object {
                continuation.yield((answer["challenge"]?.string ?? "", call.body?["number"]?.string ?? ""))
            }
            return reply
        }

        func pause(for duration: Duration) async { await carrier.pause(for: duration) }

        func login() async -> (challenge: String, number: String) {
            for await login in logins { return login }
            return ("", "")
        }
    }

    private func website(
        _ shop: RealShop, _ carrier: any Carrier, _ store: any Store = MemoryStore(),
        _ rules: Requirements = Requirements()
    ) throws -> TwoefayRelay {
        try TwoefayRelay(carrier, origin: shop.origin, website: "shop", store: store, requirements: rules)
    }

    /// The code of the README, as it stands in `FifteenLines.swift`.
    @Test func fifteenLinesLogAUserIn() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        let carrier = ObservedCarrier(try shop.carrier())
        let relay = try website(shop, carrier)
        #expect(try await !relay.isEnrolled("ada"))
        let code = try await enrol("ada", relay)
        #expect(try #require(code.qr).hasPrefix("<svg") && "\(code)" == "enrolment of \(code.token)")
        try await shop.bind("ada", try #require(code.uri))
        for word in ["approve", "deny"] {
            let result = Task { try await logIn("ada", ip: "192.0.2.7", userAgent: "Firefox", relay) }
            let login = await carrier.login()
            #expect(login.number.utf8.count == 2)
            let number = word == "approve" ? ["--number", login.number] : []
            try await shop.phone([word, "--challenge", login.challenge] + number, of: "ada")
            #expect(try await result.value == (word == "approve"))
        }
        #expect(try await relay.isEnrolled("ada"))
        #expect(try await !relay.factors(of: "ada").isEmpty)
        await carrier.carrier.close()
    }

    /// A whole life of a user, with the keys in a database.
    @Test func userIsForgottenAfterLosingAPhone() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        let directory = try TemporaryDirectory()
        let store = SQLStore(SQLiteDatabase(path: directory("shop.db")), .sqlite)
        try await store.createTables()
        let relay = try website(shop, try shop.carrier(), store)
        let first = try await relay.register("ada")
        let again = await #expect(throws: CallFault.self) { try await relay.register("ada") }
        #expect(again?.word == "conflict")
        // The user closed the page: another code.
        let code = try await relay.enrolment(of: "ada")
        #expect(code.token == first.token && code.uri != first.uri)
        #expect(try await relay.confirm("ada") == [])
        try await shop.bind("ada", try #require(code.uri))
        let device = try #require(try await relay.confirm("ada").first)
        #expect(try await relay.confirm("ada") == [])

        let details = [LoginRecord.Detail(label: "To", value: "DE02 1203 0000 0000 2020 51")]
        let login = try await relay.ask("ada", service: "Payments", action: "Transfer 40 €", details: details)
        #expect(try await relay.wait(for: login, within: .zero).state == .open)
        let restored = try #require(RecordedLogin(text: login.text))
        try await shop.phone(
            ["approve", "--challenge", login.challenge, "--number", try #require(login.number)], of: "ada")
        let decision = try await relay.wait(for: restored)
        #expect(decision.isApproved && decision.device == device && decision.proof == .signed)
        await #expect(throws: ReceiptFault.requestUsed) { try await relay.wait(for: restored) }

        let cancelled = try await relay.ask("ada")
        try await relay.cancel(cancelled)
        #expect(try await relay.wait(for: cancelled).reason == .cancelled)
        let needed = await #expect(throws: CallFault.self) { try await relay.enrolment(of: "ada") }
        #expect(needed?.word == "approval_required" && needed?.problem?.approval != nil)

        try await relay.unbind(device, of: "ada")
        try await relay.unbind(device, of: "ada")
        #expect(try await relay.isEnrolled("ada"))
        #expect(try await store.pins(of: "ada") == [])
        try await relay.forget("ada")
        #expect(try await !relay.isEnrolled("ada"))
        let unknown = await #expect(throws: CallFault.self) { try await relay.factors(of: "ada") }
        #expect(unknown?.word == "not_found")
        _ = try await relay.register("ada")
    }

    @Test func unpinnedPhoneLetsInOnlyAFirstTime() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        let store = MemoryStore()
        var rules = Requirements()
        rules.allowUnpinned = true
        let (strict, loose) = (
            try website(shop, try shop.carrier(), store), try website(shop, try shop.carrier(), store, rules)
        )
        let code = try await shop.client.register("ada").activation
        try await shop.bind("ada", try #require(code).uri)
        let login = try await loose.ask("ada")
        try await shop.phone(
            ["approve", "--challenge", login.challenge, "--number", try #require(login.number)], of: "ada")
        await #expect(throws: ReceiptFault.unknownDevice) { try await strict.wait(for: login) }
        #expect(try await loose.wait(for: login).isApproved)
        #expect(try await !loose.isEnrolled("ada"))
    }

    // MARK: Settings

    @Test func wrongSettingIsRefused() async throws {
        let carrier = ScriptedCarrier()
        for origin in ["", "https://relay/", "http://relay", "HTTPS://relay"] {
            #expect(throws: CallFault.self) {
                try TwoefayRelay(carrier, origin: origin, website: "shop", store: MemoryStore())
            }
        }
        for digits in [-1, 7] {
            var rules = Requirements()
            rules.leastDigits = digits
            #expect(throws: CallFault.self) {
                try TwoefayRelay(
                    carrier, origin: "https://relay", website: "shop", store: MemoryStore(), requirements: rules)
            }
        }
        #expect(throws: CallFault.self) {
            try TwoefayRelay(
                origin: "https://relay", ca: "/dev/null", certificate: "/dev/null", key: "/dev/null",
                store: MemoryStore())
        }
        let relay = try TwoefayRelay(carrier, origin: "https://relay", website: "shop", store: MemoryStore())
        await #expect(throws: CallFault.self) { try await relay.ask("ada", factors: []) }
        await #expect(throws: CallFault.self) { try await relay.call("GET", "user") }
        #expect(carrier.calls == [])
    }

    /// An outage or a limit ends a wait without a time only with the life of the challenge.
    @Test func waitOutlastsAnOutage() async throws {
        let refusals = [Result<RelayReply, CallFault>](repeating: .problem(503, "unavailable"), count: 20)
        let carrier = ScriptedCarrier(lines: [.asked] + refusals + [.problem(429, "limited", retryAfter: 60), .denied])
        var rules = Requirements()
        rules.leastDigits = 0
        let relay = try TwoefayRelay(
            carrier, origin: "https://relay", website: "shop", store: MemoryStore(), requirements: rules,
            time: carrier.time)
        let login = try await relay.ask("ada")
        #expect(try await relay.wait(for: login).reason == .denied)
        #expect(carrier.pauses.contains(.seconds(5)) && carrier.pauses.last == .seconds(60))
        // A page must not be held up.
        let limited = ScriptedCarrier(.problem(429, "limited", retryAfter: 1))
        let impatient = try TwoefayRelay(
            limited, origin: "https://relay", website: "shop", store: MemoryStore(), time: limited.time)
        await #expect(throws: CallFault.self) { try await impatient.wait(for: login, within: .zero) }
        #expect(limited.pauses == [])
    }

    // MARK: Webhooks

    private static let secret = WebhookSecret.make(SystemRandomness())

    private func receive(
        _ inbox: WebhookInbox, _ id: String, _ body: String, act: (WebhookInbox.Event) async throws -> Void = { _ in }
    ) async throws -> Int {
        let bytes = Array(body.utf8)
        let head = WebhookHeaders(
            id: try #require(WebhookID(id)), body: bytes, at: SystemTime().now(), secrets: [Self.secret])
        return await inbox.receive(head.fields, bytes, act: act).status
    }

    @Test func webhookTakesEffectOnce() async throws {
        let store = MemoryStore()
        let secret = String(decoding: Self.secret.text.reveal(), as: UTF8.self)
        let inbox = try WebhookInbox(secrets: ["\(secret)\n"], store: store)
        let body = #"{"type":"login.decided","timestamp":"2026-11-22T05:00:00.000Z","data":{"token":"t1"}}"#
        let count = Mutex(0)
        struct Busy: Error {}
        #expect(try await receive(inbox, "e1", body) { _ in throw Busy() } == 500)
        for _ in 0..<2 { #expect(try await receive(inbox, "e1", body) { _ in count.withLock { $0 += 1 } } == 204) }
        #expect(count.withLock { $0 } == 1)
        #expect(await inbox.receive([(name: "webhook-id", value: "e2")], Array(body.utf8)).status == 400)
    }

    @Test func unboundPhoneIsUnpinnedByItsWebhook() async throws {
        let store = MemoryStore()
        let phone = try Login().phone
        await store.addUser("ada", token: "t1")
        await store.addSecret([1], of: "ada", at: 0)
        #expect(await store.pin(phone, of: "ada", with: [1]))
        let inbox = try WebhookInbox(
            secrets: [String(decoding: Self.secret.text.reveal(), as: UTF8.self)], store: store)
        let data = #"{"token":"t1","device":"\#(phone.device)"}"#
        let body = #"{"type":"device.unbound","timestamp":"2026-11-22T05:00:00.000Z","data":\#(data)}"#
        #expect(try await receive(inbox, "e1", body) == 204)
        #expect(await store.pins(of: "ada") == [])
        #expect(await store.wasPinned("ada"))
    }
}
