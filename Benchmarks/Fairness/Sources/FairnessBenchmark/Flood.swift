import EventLoop
import JSON
import Measuring
import Synchronization

/// The requests with which a website floods the relay.
enum Flood: String, CaseIterable {
    case register, login, auth, user, backup

    /// A single request of the flood.
    func send(_ number: Int, _ site: Site, _ tokens: [String]) async -> Int? {
        let token = JSONValue.string(tokens[number % tokens.count])
        switch self {
        case .register:
            // Every name is new, because a known name would be refused sooner.
            let name = "\(site.name)-\(Flood.names.next())"
            return await site.send("POST", "/register", ["username": .string(name)])?.status
        case .login: return await site.send("POST", "/login", ["token": token])?.status
        case .auth: return await site.send("POST", "/auth", ["token": token], wait: 1)?.status
        case .user: return await site.send("GET", "/user/user-\(number % tokens.count)")?.status
        case .backup: return await site.send("POST", "/backup", ["token": token, "otp": "123456"])?.status
        }
    }

    private static let names = Turns()
}

/// A flood that runs until it is stopped.
final class RunningFlood: Sendable {
    private let isStopped = Mutex(false)
    private let answered = Turns()
    private let refused = Turns()

    var counts: (answered: Int, refused: Int) { (answered.total, refused.total) }

    /// Keeps `width` requests in flight. After `stop`, it returns when all of them have ended.
    func run(_ flood: Flood, _ site: Site, _ tokens: [String], width: Int) async {
        let turns = Turns()
        await site.loop.perform {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<width {
                    group.addTask {
                        while !self.isStopped.withLock({ $0 }) {
                            let status = await flood.send(turns.next(), site, tokens)
                            _ = (status ?? 599) < 429 ? self.answered.next() : self.refused.next()
                        }
                    }
                }
            }
        }
    }

    func stop() { isStopped.withLock { $0 = true } }
}
