import Bytes
import EventLoop
import Glibc
import HTTP
import HTTP2
import JSON
import Log
import Measuring
import Synchronization
import TLS
import World

/// The website, which answers for its users itself.
struct Site: Sendable {
    typealias Line = LoopBound<HTTP2Client>

    let loop: EventLoop
    private let tls: TLSClientContext
    private let time = SystemTime()

    init(directory: String, loop: EventLoop) throws {
        self.loop = loop
        tls = try TLSClientContext(
            roots: .pem(try read("\(directory)/ca.pem")), certificateChainPEM: try read("\(directory)/shop.pem"),
            privateKeyPEM: Secret(try read("\(directory)/shop.key")))
    }

    func connect(_ count: Int, to port: UInt16) async throws -> [Line] {
        let lines = await loop.perform { () async -> [Line] in
            var lines: [Line] = []
            for _ in 0..<count {
                let client = HTTP2Client(
                    loop: loop, host: "127.0.0.1", port: port, tls: tls, log: Log(minimum: .error, time: time))
                if (try? await client.connect()) != nil { lines.append(LoopBound(client, on: loop)) }
            }
            return lines
        }
        guard lines.count == count else { throw Unmeasured("no connection to port \(port)") }
        return lines
    }

    func close(_ lines: [Line]) async {
        await loop.perform { for line in lines { line.value.close() } }
    }

    private func request(_ path: String, _ body: JSONObject, waits: Bool = false) -> ClientRequest {
        var fields = Fields()
        fields.add("content-type", "application/json")
        if waits { fields.add("prefer", "wait=60") }
        return ClientRequest(
            method: "POST", path: path, authority: "localhost", fields: fields, body: JSONWriter.write(body))
    }

    private func post(_ path: String, _ body: JSONObject, over line: Line) async throws -> JSONObject {
        let request = request(path, body)
        switch await loop.perform({ await line.value.send(request, deadline: .seconds(30)) }) {
        case .success(let response) where response.status < 300:
            return (try? JSONReader.read(response.body))?.object ?? [:]
        case .success(let response): throw Unmeasured("\(path): \(response.status)")
        case .failure(let failure): throw Unmeasured("\(path): \(failure)")
        }
    }

    /// Creates users and asks each of them. Returns their logins.
    func logins(_ count: Int, over lines: [Line]) async throws -> [Login] {
        try await withThrowingTaskGroup(of: [Login].self) { group in
            let turns = Turns()
            for width in 0..<64 {
                group.addTask {
                    var logins: [Login] = []
                    let line = lines[width % lines.count]
                    while case let number = turns.next(), number < count {
                        let user = try await post("/register", ["username": .string("user-\(number)")], over: line)
                        guard let token = user["token"]?.string else { throw Unmeasured("no token") }
                        _ = try await post(
                            "/verify", ["id_token": .string(token), "dev_token": "aabbccdd"], over: line)
                        let asked = try await post("/login", ["token": .string(token)], over: line)
                        guard let challenge = asked["challenge"]?.string else {
                            throw Unmeasured("nobody was asked")
                        }
                        logins.append(Login(token: token, challenge: challenge))
                    }
                    return logins
                }
            }
            var all: [Login] = []
            for try await logins in group { all += logins }
            return all
        }
    }

    /// Sends a request that waits for the result of the login.
    func hold(_ login: Login, over line: Line, answered: @escaping @Sendable (Result<Response, RequestFailure>) -> Void)
    {
        let request = request("/auth", ["challenge": .string(login.challenge)], waits: true)
        loop.post { line.value.send(request, deadline: .seconds(90)) { answered($0) } }
    }

    /// Approves the login. Returns the time until the waiting request had its answer.
    func answer(_ login: Login, _ number: Int, over line: Line, _ held: Held) async throws -> Wake {
        let sent = time.instant()
        _ = try await post("/success", ["token": .string(login.token)], over: line)
        let taken = time.instant()
        let told = await held.told(number)
        return Wake(sinceSent: told - sent, sinceTaken: told - taken)
    }
}

/// The waiting requests and their results.
final class Held: Sendable {
    private struct State {
        var told: [Instant?]
        var waiting: (number: Int, continuation: CheckedContinuation<Instant, Never>)?
        var failure: String?
    }

    private let state: Mutex<State>
    private let time = SystemTime()

    init(_ count: Int) { state = Mutex(State(told: Array(repeating: nil, count: count))) }

    func answered(_ number: Int, _ result: Result<Response, RequestFailure>) {
        let now = time.instant()
        let waiting = state.withLock { state -> CheckedContinuation<Instant, Never>? in
            state.told[number] = now
            if case .success(let response) = result,
                (try? JSONReader.read(response.body))?.object?["login"]?.string == "success"
            {
            } else {
                state.failure = state.failure ?? "a request that was held: \(result)"
            }
            guard let waiting = state.waiting, waiting.number == number else { return nil }
            state.waiting = nil
            return waiting.continuation
        }
        waiting?.resume(returning: now)
    }

    func told(_ number: Int) async -> Instant {
        await withCheckedContinuation { continuation in
            let told = state.withLock { state -> Instant? in
                if state.told[number] == nil { state.waiting = (number, continuation) }
                return state.told[number]
            }
            if let told { continuation.resume(returning: told) }
        }
    }

    func check() throws {
        if let failure = state.withLock({ $0.failure }) { throw Unmeasured(failure) }
    }
}
