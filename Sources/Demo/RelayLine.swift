import Daemon
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS

/// One side's way to the relay: an HTTP/2 connection that is opened when it is first needed, and again when it is gone.
final class RelayLine: Sendable {
    /// What goes over it, for who wants to look on.
    struct Call: Sendable {
        var method = "POST"
        let path: String
        var fields: [Fields.Field] = []
        let body: JSONObject
        var patience = Duration.seconds(10)
    }

    let loop: EventLoop
    private let relay: WebAddress
    private let tls: TLSClientContext
    private let client = Mutex<LoopBound<HTTP2Client>?>(nil)

    init(loop: EventLoop, relay: WebAddress, tls: TLSClientContext) {
        self.loop = loop
        self.relay = relay
        self.tls = tls
    }

    /// On the loop. Whatever the relay answers comes back, refusals too.
    func send(_ call: Call) async throws(CallFailure) -> Answer {
        let client = try await opened()
        var fields = Fields([.init("content-type", "application/json")])
        for field in call.fields { fields.add(field.name, field.value) }
        let request = ClientRequest(
            method: call.method, path: call.path, authority: String(relay.settingsText.dropFirst("https://".count)),
            fields: fields, body: JSONWriter.write(call.body))
        switch await client.value.send(request, deadline: call.patience) {
        case .failure(.notSent(let reason)): throw .notSent(reason)
        case .failure(.ambiguous(let reason)): throw .ambiguous(reason)
        case .success(let response):
            guard let body = (try? JSONReader.read(response.body))?.object else {
                throw .refused(status: response.status, "not with a JSON object")
            }
            return Answer(status: response.status, body: body)
        }
    }

    func close() {
        guard let client = client.withLock({ $0 }) else { return }
        loop.post { client.value.close() }
    }

    private func opened() async throws(CallFailure) -> LoopBound<HTTP2Client> {
        if let client = client.withLock({ $0 }), client.value.state == .open { return client }
        let fresh = LoopBound(
            HTTP2Client(
                loop: loop, host: relay.host, port: relay.port ?? 443, tls: tls, log: Log(minimum: .error)),
            on: loop)
        do throws(ConnectionFailure) {
            try await fresh.value.connect()
        } catch {
            throw .notSent(error.description)
        }
        client.withLock { $0 = fresh }
        return fresh
    }
}

/// What the relay said.
public struct Answer: Sendable {
    public let status: Int
    public let body: JSONObject

    /// The body of an answer that is no refusal.
    func accepted() throws(CallFailure) -> JSONObject {
        guard (200..<300).contains(status) else {
            let detail = body["detail"]?.string ?? body["title"]?.string ?? ""
            throw .refused(
                status: status, [body["code"]?.string ?? "", detail].filter { !$0.isEmpty }.joined(separator: ": "))
        }
        return body
    }

    /// A text that must be there.
    func text(_ name: String) throws(CallFailure) -> String {
        guard let text = try accepted()[name]?.string else { throw .refused(status: status, "without \(name)") }
        return text
    }
}

/// Why a call came to nothing.
public enum CallFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The relay has certainly done nothing.
    case notSent(String)
    /// Nobody knows what the relay has done.
    case ambiguous(String)
    case refused(status: Int, String)
    /// The caller's own affair, before anything was sent.
    case unable(String)

    public var description: String {
        switch self {
        case .notSent(let reason): "the relay was not reached: \(reason)"
        case .ambiguous(let reason): "the relay gave no answer: \(reason)"
        case .refused(let status, let reason): "the relay answered \(status), \(reason)"
        case .unable(let reason): reason
        }
    }
}
