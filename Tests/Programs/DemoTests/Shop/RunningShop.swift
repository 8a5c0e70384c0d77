import Bytes
import Crypto
import EventLoop
import Glibc
import HTTP
import HTTP1
import Log
import Phone
import Synchronization
import TestSupport
import World

@testable import Demo

/// The sample website on its own port, in front of the built relay.
final class RunningShop: Sendable {
    let relay: RunningRelay
    let port: UInt16
    private let group: LoopGroup
    private let server: LoopBound<HTTP1Server>
    private let shop: Shop
    private let phones = Mutex<[ScriptedPhone]>([])

    private init(
        relay: RunningRelay, port: UInt16, group: LoopGroup, server: LoopBound<HTTP1Server>, shop: Shop
    ) {
        (self.relay, self.port, self.group, self.server, self.shop) = (relay, port, group, server, shop)
    }

    /// Runs the website while `body` runs.
    static func run(_ policies: [String] = [], _ body: (RunningShop) async throws -> Void) async throws {
        let shop = try await start(policies)
        do {
            try await body(shop)
        } catch {
            await shop.stop()
            throw error
        }
        await shop.stop()
    }

    private static func start(_ policies: [String]) async throws -> RunningShop {
        let relay = try await RunningRelay.start()
        try await relay.tool(
            ["website", "add", "shop", "--display-name", Shop.name, "--out", relay.directory.path] + policies)
        guard let origin = WebAddress(relay.origin) else { throw Child.Problem(description: "no address") }
        let access = WebsiteAccess(
            name: "shop", displayName: Shop.name, relay: origin, authority: try TextFile.bytes(relay.file("ca.pem")),
            certificate: try TextFile.bytes(relay.directory("shop.pem")),
            key: Secret(try TextFile.bytes(relay.directory("shop.key"))))
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        let loop = group.loops[0]
        let responder = PageResponder(framedBy: "http://localhost:9", files: Shop.files)
        // Only the tests of the hash itself need a costly hash.
        let cost = PasswordHash.Cost(logarithmOfN: 4, r: 8, p: 1) ?? .usual
        typealias Started = (shop: Shop, server: LoopBound<HTTP1Server>, port: UInt16)
        let started = await loop.perform { () -> Result<Started, any Error> in
            Result {
                guard let address = SocketAddress(host: "127.0.0.1", port: 0) else {
                    throw Child.Problem(description: "no address")
                }
                let shop = try Shop(
                    access, responder: responder, port: 0, loop: loop, randomness: SystemRandomness(), cost: cost,
                    observer: { _ in }, shown: { _ in })
                let server = try HTTP1Server(
                    loop: loop, address: address, pages: shop, log: Log(minimum: .error))
                try server.start()
                return (shop, LoopBound(server, on: loop), server.port)
            }
        }
        let (shop, server, port) = try started.get()
        return RunningShop(relay: relay, port: port, group: group, server: server, shop: shop)
    }

    private func stop() async {
        let (server, shop) = (server, shop)
        for phone in phones.withLock({ $0 }) { await group.loops[0].perform { phone.close() } }
        await group.loops[0].perform { server.value.stop() }
        await shop.close()
        group.stopAndJoin()
    }

    // MARK: Visitors and phones

    func visitor(_ arguments: String...) throws -> Visitor { try Visitor(self, arguments) }

    /// Returns a phone that was bound with the activation on a page.
    func phone(_ name: String, reading page: Visitor.Page) async throws -> ScriptedPhone {
        guard let uri = page.activation else { throw Child.Problem(description: "no activation: \(page)") }
        let phone = ScriptedPhone(loop: group.loops[0], randomness: SystemRandomness())
        phones.withLock { $0.append(phone) }
        let activation = try ActivationURI(uri)
        try await on { try await phone.enrol(activation, name: name) }
        return phone
    }

    /// Returns a customer who has signed up and bound a phone.
    func customer(_ name: String) async throws -> (visitor: Visitor, phone: ScriptedPhone) {
        let visitor = try visitor()
        let phone = try await phone("\(name)'s phone", reading: try await visitor.signUp(name))
        _ = try await visitor.get("/phones")
        return (visitor, phone)
    }

    /// Answers the latest request on the phone with the result of `decide`, and returns the
    /// request.
    @discardableResult
    func answer(
        _ phone: ScriptedPhone, _ decide: @escaping @Sendable (ChallengePrompt) -> SignedStatement.Decision
    ) async throws -> Phone.ChallengePrompt {
        try await on {
            guard let question = try await phone.asked().last else {
                throw Child.Problem(description: "the phone is asked nothing")
            }
            _ = try await phone.answer(decide(question), to: question)
            return question
        }
    }

    /// Polls until the condition is true, because the website's background work sends no answer.
    func until(_ condition: () async throws -> Bool) async throws {
        while try await !condition() {
            let loop = group.loops[0]
            await loop.perform { await loop.sleep(for: .milliseconds(50)) }
        }
    }

    func on<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let done = await group.loops[0].perform { () -> Result<Value, any Error> in
            do {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        return try done.get()
    }
}
