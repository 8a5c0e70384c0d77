import Bytes
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import TLS
import TestSupport
import World

/// A connection that stays open, unlike curl's.
final class Connection: Sendable {
    private let client: LoopBound<HTTP2Client>
    private let authority: String

    /// The loop of all test connections.
    private static let loop: EventLoop = {
        guard let group = try? LoopGroup.start(count: 1, time: SystemTime()) else { fatalError("no loop for clients") }
        return group.loops[0]
    }()

    /// Options with long timeouts, for a busy machine.
    private static let patient = {
        var options = ClientOptions()
        options.connectTimeout = .seconds(120)
        return options
    }()

    struct Refused: Error { let failure: ConnectionFailure }

    init(_ api: APIClient) async throws {
        let caller = api.caller
        let tls = try TLSClientContext(
            roots: .pem(try TextFile.bytes(caller.authorityPath)),
            certificateChainPEM: try caller.certificatePath.map { try TextFile.bytes($0) },
            privateKeyPEM: try caller.keyPath.map { Secret(try TextFile.bytes($0)) })
        let loop = Self.loop
        authority = String(caller.origin.dropFirst("https://".count))
        let options = Self.patient
        let client = await loop.perform {
            LoopBound(
                HTTP2Client(
                    loop: loop, host: "127.0.0.1", port: caller.port, tls: tls, options: options,
                    log: Log(minimum: .error)),
                on: loop)
        }
        self.client = client
        let failure = await loop.perform { () -> ConnectionFailure? in
            do throws(ConnectionFailure) {
                try await client.value.connect()
                return nil
            } catch { return error }
        }
        if let failure { throw Refused(failure: failure) }
    }

    deinit {
        let client = client
        client.loop.post { client.value.close() }
    }

    func send(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [Fields.Field] = []
    ) async throws -> Response {
        let request = request(method, path, body, fields)
        let client = client
        return try await client.loop.perform { await client.value.send(request, deadline: .seconds(120)) }.get()
    }

    /// Sends the same request several times in one turn of the loop, so the kernel gets all of them in one piece.
    func sendTogether(_ method: String, _ path: String, _ body: JSONObject, times: Int) async throws -> [Response] {
        let request = request(method, path, body, [])
        let client = client
        let results = await client.loop.perform {
            await withCheckedContinuation { continuation in
                var results: [Result<Response, RequestFailure>] = []
                for _ in 0..<times {
                    client.value.send(request, deadline: .seconds(120)) { result in
                        results.append(result)
                        if results.count == times { continuation.resume(returning: results) }
                    }
                }
            }
        }
        return try results.map { try $0.get() }
    }

    private func request(
        _ method: String, _ path: String, _ body: JSONObject?, _ fields: [Fields.Field]
    ) -> ClientRequest {
        var fields = fields
        if body != nil { fields.append(.init("content-type", "application/json")) }
        return ClientRequest(
            method: method, path: path, authority: authority, fields: Fields(fields),
            body: body.map { JSONWriter.write($0) } ?? [])
    }
}

extension Response {
    subscript(name: String) -> JSONValue? { (try? JSONReader.read(body))?.object?[name] }
}
