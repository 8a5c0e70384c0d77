import EventLoop
import JSON
import Synchronization
import TestSupport
import Testing
import World

/// Many users of one website of a cluster, each always with a login in progress, until the traffic is ended.
final class ClusterTraffic: Sendable {
    private struct State {
        var asked = 0
        var ended: [String: Bool] = [:]
        var receipts: [String: String] = [:]
        var codes = 0
        var isOver = false
    }

    let shop: ClusterShop
    private let users: Int
    private let hesitation: Range<Int64>
    private let chance: SeededRandomness
    private let state = Mutex(State())

    /// - Parameter hesitation: how long people take to answer, in milliseconds.
    init(
        _ shop: ClusterShop, users: Int, _ chance: SeededRandomness, hesitation: Range<Int64> = 2000..<18_000
    ) {
        self.shop = shop
        self.users = users
        self.hesitation = hesitation
        self.chance = chance
    }

    func end() { state.withLock { $0.isOver = true } }
    var isOver: Bool { state.withLock { $0.isOver } }

    /// The result of every challenge: whether it was approved.
    var ended: [String: Bool] { state.withLock { $0.ended } }
    /// The receipt that the phone signed about each challenge, as the website got it.
    var receipts: [String: String] { state.withLock { $0.receipts } }
    /// The number of used codes of tokens.
    var codes: Int { state.withLock { $0.codes } }

    func note(_ login: Login, approved: Bool) { state.withLock { $0.ended[login.challenge] = approved } }

    /// Returns when `count` more logins have ended.
    func more(_ count: Int) async throws {
        let enough = ended.count + count
        while ended.count < enough { try await pause() }
    }

    private func pause() async throws {
        try Task.checkCancellation()
        await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(50)) }
    }

    // MARK: Phones

    /// Enrols users: one after the other at each client, with all clients at the same time.
    func enrol() async throws -> [(name: String, client: MultiRelayClient, phone: CarriedPhone)] {
        let clients = shop.clients
        return try await withThrowingTaskGroup(of: [(name: String, client: MultiRelayClient, phone: CarriedPhone)].self)
        {
            group in
            for (number, client) in clients.enumerated() {
                group.addTask { [shop, chance, users] in
                    var enrolled: [(name: String, client: MultiRelayClient, phone: CarriedPhone)] = []
                    for user in stride(from: number, to: users, by: clients.count) {
                        let name = "user-\(user)"
                        enrolled.append((name, client, try await shop.enrol(name, at: client, chance)))
                    }
                    return enrolled
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Runs one login after the other: the website's request is held until the result, while the phone's owner
    /// takes some time.
    func live(_ name: String, at client: MultiRelayClient, with phone: CarriedPhone) async throws {
        var number = 0
        repeat {
            number += 1
            let asked = try await client.insist(
                "POST", "/login", ["username": .string(name), "service": "web"], key: "\(name)-\(number)")
            let login = try Login(asked.reply)
            async let heldResult = ClusterShop.result(of: login, at: client)
            if number == 1 {
                // Waits, so that all logins are in flight at the same time once.
                state.withLock { $0.asked += 1 }
                while state.withLock({ $0.asked < users }) { try await pause() }
            }
            await client.pause(hesitation)
            let approves = chance.number(below: 5) > 0
            try await phone.decide(login, approves: approves)
            let result = try await heldResult
            #expect(result["login"] == (approves ? "success" : "failure") && result["proof"] == "signed", "\(result)")
            #expect(result["reason"] == (approves ? nil : "denied") && result["device"] == phone.device, "\(result)")
            note(login, approved: approves)
            state.withLock { $0.receipts[login.challenge] = result["receipt"] }
        } while !isOver
    }

    // MARK: Codes

    /// Runs one login after the other with a token; each used code is submitted once more.
    func type(_ codes: [String], of user: CodeUser) async throws {
        for (number, code) in codes.enumerated() where !isOver {
            let login = try await user.login(number)
            if number > 0 { try await user.replay(codes[number - 1], for: login) }
            let isRight = try await user.handIn(code, for: login)
            #expect(isRight, "\(user.name): the code of number \(number) is refused")
            note(login, approved: true)
            state.withLock { $0.codes += 1 }
        }
    }

    /// Runs one login with an app. If the database was so slow that a code expired, the next code is used.
    func type(by secret: String, of user: CodeUser) async throws {
        let login = try await user.login(0)
        while try await !user.handIn(try await CodeUser.now(secret, in: 30), for: login) {}
        note(login, approved: true)
    }
}
