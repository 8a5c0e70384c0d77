import Bytes
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import TLS
import TestSupport
import World

/// The loop of the clients of all tests.
enum Clients {
    static let loop: EventLoop = {
        guard let group = try? LoopGroup.start(count: 1, time: SystemTime()) else { fatalError("no loop for clients") }
        return group.loops[0]
    }()
}

/// A connection of Twoefay's own client to a running relay, so that a test sees the result of every request on it.
struct ClientConnection: Sendable {
    private let client: LoopBound<HTTP2Client>
    private let authority: String

    /// Options with long timeouts, for a busy machine.
    private static let patient = {
        var options = ClientOptions()
        options.connectTimeout = .seconds(120)
        return options
    }()

    /// Opens a connection, and waits for the server's SETTINGS.
    static func open(_ tls: TLSClientContext, port: UInt16) async throws(ConnectionFailure) -> ClientConnection {
        let loop = Clients.loop
        let options = Self.patient
        let client = await loop.perform {
            LoopBound(
                HTTP2Client(
                    loop: loop, host: "127.0.0.1", port: port, tls: tls, options: options, log: Log(sink: MemorySink())),
                on: loop)
        }
        let failure = await loop.perform { () async -> ConnectionFailure? in
            do throws(ConnectionFailure) {
                try await client.value.connect()
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
        return ClientConnection(client: client, authority: "127.0.0.1:\(port)")
    }

    func send(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String: String] = [:],
        deadline: Duration = .seconds(120)
    ) async -> Result<Reply, RequestFailure> {
        var all = Fields()
        if body != nil { all.add("content-type", "application/json") }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { all.add(name, value) }
        let request = ClientRequest(
            method: method, path: path, authority: authority, fields: all,
            body: body.map { JSONWriter.write($0) } ?? [])
        let result = await Clients.loop.perform { [client] in await client.value.send(request, deadline: deadline) }
        return result.map(Reply.init)
    }

    /// Makes the client give up everything at the first GOAWAY, as many clients do.
    func giveUpAtGoAway() async {
        await Clients.loop.perform { [client] in
            client.value.onStateChange = { state in
                if state == .goingAway { Clients.loop.post { client.value.close() } }
            }
        }
    }

    var state: ClientState {
        get async { await Clients.loop.perform { [client] in client.value.state } }
    }

    /// Returns when the server has closed the connection.
    func isOver() async {
        while await state != .closed { await Task.yield() }
    }

    func close() async { await Clients.loop.perform { [client] in client.value.close() } }
}

/// An answer with its parsed JSON.
struct Reply: Sendable, CustomStringConvertible {
    let status: Int
    let fields: Fields
    let json: JSONObject

    init(_ response: Response) {
        status = response.status
        fields = response.fields
        json = (try? JSONReader.read(response.body).object) ?? [:]
    }

    subscript(name: String) -> String? { json[name]?.string }
    /// The states of the steps, in order.
    var steps: [String] { (json["steps"]?.array ?? []).map { $0.object?["state"]?.string ?? "?" } }
    var retryAfter: Int? { fields["retry-after"].flatMap { Int($0) } }
    var description: String { "\(status) \(JSONWriter.text(.object(json)))" }
}
