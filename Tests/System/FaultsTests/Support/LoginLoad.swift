import HTTP2
import JSON
import Synchronization
import TestSupport
import Testing

/// Logins that follow each other over connections which are opened once.
///
/// Each lane has a connection of the website and one of each of its phones. A connection that ends
/// fails every later login of its lane, so a failure cannot be missed.
final class LoginLoad: Sendable {
    private struct Lane: Sendable {
        let shop: ClientConnection
        let users: [(token: String, phone: Phone, line: ClientConnection)]
    }

    private let lanes: [Lane]
    private let gate = Gate()
    private let isStopped = Atomic(false)
    private let succeeded = Atomic(0)
    private let faults = Mutex<[String]>([])

    /// Enrols the users. One user may log in a thousand times in five minutes, so each lane has
    /// several.
    init(_ fixture: Fixture, lanes: Int, users: Int) async throws {
        var all: [Lane] = []
        for lane in 0..<lanes {
            var own: [(token: String, phone: Phone, line: ClientConnection)] = []
            for user in 0..<users {
                let (token, phone) = try await fixture.enrol("user-\(lane)-\(user)")
                own.append((token, phone, try await phone.client.line()))
            }
            all.append(Lane(shop: try await fixture.shop.line(), users: own))
        }
        self.lanes = all
    }

    /// Logs in on all lanes until `stop`.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            for lane in lanes {
                group.addTask { [self] in
                    var turn = 0
                    while !isStopped.load(ordering: .relaxed) {
                        let user = lane.users[turn % lane.users.count]
                        do {
                            try await logIn(user.token, user.phone, user.line, lane.shop)
                            succeeded.add(1, ordering: .relaxed)
                        } catch {
                            faults.withLock { $0.append("\(error)") }
                            break
                        }
                        gate.answered()
                        turn += 1
                    }
                    // A lane that has failed must not keep the test waiting.
                    while !isStopped.load(ordering: .relaxed) {
                        gate.answered()
                        await Task.yield()
                    }
                }
            }
        }
    }

    private func logIn(
        _ token: String, _ phone: Phone, _ line: ClientConnection, _ shop: ClientConnection
    ) async throws {
        let login = try Login(try await shop.send("POST", "/login", ["token": .string(token)]).get())
        let approved = try await line.send("POST", "/success", phone.answer(login)).get()
        try #require(approved["login"] == "success", "\(approved)")
        let end = try await shop.send("POST", "/auth", ["challenge": .string(login.challenge)]).get()
        try #require(end["login"] == "success", "\(end)")
    }

    /// Returns after so many more logins.
    func logins(_ count: Int) async { await gate.answers(count) }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    /// The first failures, and the number of logins that succeeded.
    var failures: [String] { faults.withLock { $0 } }
    var count: Int { succeeded.load(ordering: .relaxed) }

    /// The connections that the relay has ended, or is about to end.
    var ended: Int {
        get async {
            var count = 0
            for lane in lanes {
                for line in [lane.shop] + lane.users.map(\.line) where await line.state != .open { count += 1 }
            }
            return count
        }
    }
}
