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

/// A website with its own connections, on its own loop.
struct Site: Sendable {
    /// The number of simultaneous requests on one connection.
    static let streams = 100

    let name: String
    let loop: EventLoop
    private let lines: [LoopBound<HTTP2Client>]
    private let turns = Turns()

    init(_ name: String, directory: String, port: UInt16, loop: EventLoop, connections: Int) async throws {
        self.name = name
        self.loop = loop
        let tls = try TLSClientContext(
            roots: .pem(try read("\(directory)/ca.pem")), certificateChainPEM: try read("\(directory)/\(name).pem"),
            privateKeyPEM: Secret(try read("\(directory)/\(name).key")))
        lines = await loop.perform { () async -> [LoopBound<HTTP2Client>] in
            var lines: [LoopBound<HTTP2Client>] = []
            for _ in 0..<connections {
                let client = HTTP2Client(
                    loop: loop, host: "127.0.0.1", port: port, tls: tls,
                    log: Log(minimum: .error, time: SystemTime()))
                if (try? await client.connect()) != nil { lines.append(LoopBound(client, on: loop)) }
            }
            return lines
        }
        guard lines.count == connections else { throw Unmeasured("no connection for \(name)") }
    }

    /// Sends a request, and returns the status and the body; nil if there is no answer. Call it on
    /// the site's loop.
    func send(
        _ method: String, _ path: String, _ body: JSONObject? = nil, wait: Int? = nil
    ) async -> (status: Int, body: JSONObject)? {
        var fields = Fields()
        if body != nil { fields.add("content-type", "application/json") }
        if let wait { fields.add("prefer", "wait=\(wait)") }
        let request = ClientRequest(
            method: method, path: path, authority: "localhost", fields: fields,
            body: body.map { JSONWriter.write($0) } ?? [])
        let line = lines[turns.next() % lines.count]
        switch await line.value.send(request, deadline: .seconds(90)) {
        case .success(let response):
            return (response.status, (try? JSONReader.read(response.body))?.object ?? [:])
        case .failure: return nil
        }
    }

    /// Creates users with a phone for which the website answers, and returns their tokens.
    func users(_ count: Int) async throws -> [String] {
        let made = Tokens()
        let turns = Turns()
        await loop.perform {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<16 {
                    group.addTask {
                        while case let number = turns.next(), number < count {
                            let name = JSONValue.string("user-\(number)")
                            guard let user = await send("POST", "/register", ["username": name]),
                                let token = user.body["token"]?.string,
                                let bound = await send(
                                    "POST", "/verify", ["id_token": .string(token), "dev_token": "aabbccdd"]),
                                bound.status == 200
                            else { continue }
                            made.add(token)
                        }
                    }
                }
            }
        }
        let tokens = made.all
        guard tokens.count == count else { throw Unmeasured("\(tokens.count) users instead of \(count)") }
        return tokens
    }

    func close() async { await loop.perform { for line in lines { line.value.close() } } }
}

private final class Tokens: Sendable {
    private let kept = Mutex<[String]>([])

    var all: [String] { kept.withLock { $0 } }
    func add(_ token: String) { kept.withLock { $0.append(token) } }
}
