import Bytes
import Glibc
import JSON
import Synchronization
import TestSupport
import Testing
import TwoefayClient
import World

/// RelayClient with the real daemon and the real phone program.
@Suite("RelayClient with a real relay", .timeLimit(.minutes(15)), .mayBlock) struct RealRelayTests {
    @Test func loginIsAskedAndItsReceiptVerified() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        let registered = try await shop.client.register("ada", email: "ada@example.com")
        let k = Secret(SystemRandomness().bytes(32))
        try await shop.bind("ada", try #require(registered.activation).uri(with: k))
        let user = try await shop.client.user("ada")
        #expect(user.token == registered.token && user.email == "ada@example.com" && user.state == .active)
        let device = try #require(user.devices.first)
        #expect(user.devices.count == 1 && device.state == .active && device.name == "ada's")
        let phone = try BindingCheck(origin: shop.origin, website: "shop").pinned(
            device, token: registered.token, k: k)

        let login = try await shop.client.ask(
            LoginRequest(
                username: "ada", ip: "203.0.113.7", userAgent: "Fire\u{202e}fox " + String(repeating: "x", count: 600),
                service: "Payments",
                action: "transfer", details: [.init(label: "amount", value: "12,00 €")]))
        #expect(login.hasPhone && login.number?.count == 2)
        #expect(try await shop.client.result(of: login.challenge).login == .wait)
        async let result = shop.client.wait(for: login)
        try await shop.answer("approve", login)
        let outcome = try await result
        #expect(outcome.isSuccess && outcome.proof == .signed && outcome.assurance == .high)
        let check = ReceiptCheck(origin: shop.origin, website: "shop", displayName: "The Shop", leastDigits: 2)
        let approval = try await check.approval(
            try LoginEvidence(outcome), to: login.asked, from: [phone], at: SystemTime().now().seconds
        ) { $0 == login.asked.request }
        #expect(approval.device == device.id)

        let denied = try await shop.client.ask(LoginRequest(username: "ada"))
        async let no = shop.client.wait(for: denied)
        try await shop.answer("deny", denied)
        let refusal = try await no
        #expect(refusal.login == .failure && refusal.reason == .denied && refusal.proof == .signed)
        #expect(throws: ReceiptFault.notSuccessful) { try LoginEvidence(refusal) }
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func recoveryCodesCountWhenOneIsTypedBack(_ kind: StoreKind) async throws {
        let shop = try await RealShop(
            try await RunningRelay.start(kind), ["--recovery-check", "on", "--further-factors", "website"])
        let registered = try await shop.client.register("ada")
        try await shop.bind("ada", try #require(registered.activation).uri)
        let new = try await shop.client.recoveryCodes(for: "ada")
        let position = try #require(new.position)
        let waiting = try #require(try await shop.client.user("ada").factors.first { $0.kind == .recovery })
        #expect(waiting.state == .waiting && waiting.position == position)
        let login = try await shop.client.ask(LoginRequest(username: "ada"))
        #expect(login.missing == [.recovery])
        // A code that is not confirmed lets nobody in, and has the form of none of the user's codes.
        #expect(try await !shop.client.enter(new.codes[0], for: login.challenge).isSuccess)
        #expect(try await shop.client.confirmRecoveryCodes(of: "ada", code: new.codes[Int(position) - 1]))
        #expect(try await shop.client.user("ada").missing == [])
        #expect(try await shop.client.enter(new.codes[Int(position) - 1], for: login.challenge).isSuccess)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func cancelledLoginEndsTheWait(_ kind: StoreKind) async throws {
        let shop = try await RealShop(try await RunningRelay.start(kind))
        let registered = try await shop.client.register("ada")
        try await shop.bind("ada", try #require(registered.activation).uri)
        let login = try await shop.client.ask(LoginRequest(username: "ada"))
        async let result = shop.client.wait(for: login.challenge)
        try await shop.client.cancel(login.challenge)
        #expect(try await result.reason == .cancelled)
        let first = try await shop.client.ask(LoginRequest(username: "ada"))
        let second = try await shop.client.ask(LoginRequest(username: "ada"))
        #expect(try await shop.client.wait(for: first).reason == .superseded)
        try await shop.answer("fraud", second)
        #expect(try await shop.client.wait(for: second).reason == .fraud)
        let frozen = try await shop.client.ask(LoginRequest(username: "ada"))
        #expect(frozen.factor == nil && frozen.number == nil)
        #expect(try await shop.client.wait(for: frozen).reason == .frozen)
        #expect(try await shop.client.user("ada").stoppedBy == "phone")
        await #expect(throws: CallFault.self) { try await shop.client.unlock("ada") }
    }

    @Test func usersAndPhonesAreManaged() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        let client = shop.client
        let registered = try await client.register("zoë/1", displayName: "Zoë", language: "de")
        try await shop.bind("zoë", try #require(registered.activation).uri)
        let device = try #require(try await client.user("zoë/1").devices.first)
        #expect(try await client.suspend(device.id, of: "zoë/1").state == .suspended)
        #expect(try await client.resume(device.id, of: "zoë/1").state == .active)
        #expect(try await client.rename(device.id, of: "zoë/1", to: "Old").name == "Old")
        #expect(
            try await client.change("zoë/1", .init(displayName: .to("Z"), language: .removed))
                == [])
        // A second factor needs an approval on the bound phone.
        let fault = await #expect(throws: CallFault.self) { try await client.addTOTP(for: "zoë/1") }
        let needed = try #require(fault?.problem?.approval)
        try await shop.approve(needed, of: "zoë")
        #expect(try await client.wait(for: needed.challenge).isSuccess)
        let setup = try await client.addTOTP(for: "zoë/1", approval: needed.challenge)
        let code = try await Child.run("oathtool", ["--totp", "--base32", setup.secret])
        #expect(try await client.confirmTOTP(of: "zoë/1", code: String(code.output.prefix(6))))
        #expect(try await client.user("zoë/1").factors.map(\.kind).contains(.totp))
        try await client.dropTOTP(of: "zoë/1")
        #expect(try await client.unlock("zoë/1"))
        try await client.unbind(device.id, of: "zoë/1")
        #expect(try await client.user("zoë/1").devices.map(\.state) == [.revoked])
        try await client.forget("zoë/1")
        let gone = await #expect(throws: CallFault.self) { try await client.user("zoë/1") }
        #expect(gone?.problem?.code == .notFound)
    }

    /// A user without a phone, who logs in with the codes of a token.
    @Test func codeLogsAUserIn() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        let client = shop.client
        _ = try await client.register("ada")
        #expect(try await client.recoveryCodes(for: "ada").codes.count == 10)
        // The secret of RFC 4226's test vectors, with codes 0, 1, 2 and 3.
        try await client.addHOTP(for: "ada", secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
        let login = try await client.ask(LoginRequest(username: "ada", factors: [.hotp]))
        #expect(!login.hasPhone && login.factor == .hotp && login.number == nil)
        let wrong = try await client.enter("000000", for: login.challenge)
        #expect(wrong.login == .failure && wrong.reason == nil)
        let outcome = try await client.enter("755224", for: login.challenge)
        #expect(outcome.isSuccess && outcome.proof == .code && outcome.factor == .hotp)
        let again = await #expect(throws: CallFault.self) {
            try await client.enter("287082", for: login.challenge)
        }
        #expect(again?.problem?.code == .alreadyDecided)
        #expect(try await client.resynchroniseHOTP(of: "ada", codes: ("359152", "969429")))
        try await client.dropHOTP(of: "ada")
    }

    @Test(arguments: [StoreKind.file, .mariadb])
    func refusalsAreInTheVisitorsLanguage(_ kind: StoreKind) async throws {
        let shop = try await RealShop(try await RunningRelay.start(kind))
        _ = try await shop.client.register("ada")
        func problem(_ client: RelayClient) async -> Problem? {
            (await #expect(throws: CallFault.self) { _ = try await client.register("ada") })?.problem
        }
        let english = await problem(shop.client)
        #expect(english?.language == "en" && english?.faults.first?.message == "is already a user of this website")
        for client in [shop.client.speaking(to: "de-AT, en;q=0.5"), shop.client.speaking(to: "en", chosen: "de")] {
            let german = await problem(client)
            #expect(german?.language == "de" && german?.code == .conflict)
            #expect(german?.faults.first?.message == "ist schon Benutzer dieser Website")
            #expect(german?.faults.first?.messageKey == "username.taken")
        }
    }

    @Test func refusalsAreReported() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        _ = try await shop.client.register("ada")
        func code(_ body: @Sendable () async throws -> Void) async -> Problem.Code? {
            (await #expect(throws: CallFault.self) { try await body() })?.problem?.code
        }
        let client = shop.client
        #expect(await code { _ = try await client.register("ada") } == .conflict)
        #expect(await code { _ = try await client.ask(LoginRequest(username: "bob")) } == .notFound)
        #expect(await code { _ = try await client.ask(LoginRequest(username: "ada", ip: "here")) } == .invalid)
        #expect(await code { _ = try await client.result(of: String(repeating: "0", count: 32)) } == .notFound)
        #expect(await code { try await client.call("POST", "/nowhere", [:]) } == .routeNotFound)
        #expect(await code { try await client.call("GET", "/login") } == .methodNotAllowed)
        #expect(await code { try await client.call("POST", "/pending", [:]) } == .forbidden)
        #expect(await code { try await client.begin(.totp, of: "x") } == .notFound)
        // A client whose certificate was issued by another relay.
        let other = try await RunningRelay.start()
        _ = try await other.website("shop")
        let stranger = RelayClient(try RealShop.carrier(to: shop.relay, as: other), retries: .never)
        let fault = await #expect(throws: CallFault.self) { try await stranger.user("ada") }
        guard case .unreached = fault else {
            Issue.record("\(String(describing: fault))")
            return
        }
    }

    /// The relay is killed while it holds the request, and restarts. The website still gets the
    /// result.
    @Test(arguments: [SIGKILL, SIGTERM]) func waitSurvivesARelayRestart(signal: Int32) async throws {
        let relay = try await RunningRelay.start()
        let shop = try await RealShop(relay)
        let registered = try await shop.client.register("ada")
        try await shop.bind("ada", try #require(registered.activation).uri)
        let login = try await shop.client.ask(LoginRequest(username: "ada"))
        async let result = shop.client.wait(for: login)
        // This request follows the wait on the same connection, so the relay has received the wait.
        _ = try await shop.client.user("ada")
        if signal == SIGKILL { await relay.kill() } else { await relay.stop() }
        try await relay.restart()
        try await shop.answer("approve", login)
        #expect(try await result.isSuccess)
    }

    @Test func cancelledWaitLeavesTheChallengeOpen() async throws {
        let shop = try await RealShop(try await RunningRelay.start())
        let client = shop.client
        let registered = try await client.register("ada")
        try await shop.bind("ada", try #require(registered.activation).uri)
        let login = try await client.ask(LoginRequest(username: "ada"))
        let waiting = Task {
            do throws(CallFault) {
                return Result<LoginOutcome, CallFault>.success(try await client.wait(for: login))
            } catch {
                return .failure(error)
            }
        }
        _ = try await client.user("ada")
        waiting.cancel()
        #expect(await waiting.value == .failure(.cancelled))
        try await shop.answer("approve", login)
        #expect(try await client.wait(for: login).isSuccess)
    }

    /// The answer is lost, but the retry opens no second challenge.
    @Test func lostAnswersCreateOneChallenge() async throws {
        let relay = try await RunningRelay.start()
        let shop = try await RealShop(relay)
        let registered = try await shop.client.register("ada")
        try await shop.bind("ada", try #require(registered.activation).uri)
        let lossy = RelayClient(LossyCarrier(try shop.carrier()), randomness: SystemRandomness())
        let login = try await lossy.ask(LoginRequest(username: "ada"))
        #expect(try relay.count("SELECT count(*) FROM challenge") == 1)
        try await shop.answer("approve", login)
        #expect(try await lossy.wait(for: login).isSuccess)
        let fault = await #expect(throws: CallFault.self) { try await lossy.register("bob") }
        #expect(fault?.problem?.code == .shownOnce)
        // A secret is shown once. The user is registered, and the website can request another code.
        #expect(try await shop.client.activation(for: "bob").uri.hasPrefix("twoefay://"))
    }
}

/// A transport that loses the first answer to each idempotency key.
private final class LossyCarrier: Carrier {
    private let carrier: HTTP2Carrier
    private let carried = Mutex<Set<String>>([])

    init(_ carrier: HTTP2Carrier) { self.carrier = carrier }

    func send(_ call: RelayCall) async throws(CallFault) -> RelayReply {
        let reply = try await carrier.send(call)
        guard let key = call.fields["idempotency-key"] else { return reply }
        if carried.withLock({ $0.insert(key).inserted }) { throw .unanswered("lost on its way") }
        return reply
    }

    func pause(for duration: Duration) async {}
}
