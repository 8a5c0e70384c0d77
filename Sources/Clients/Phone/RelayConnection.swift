import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS

/// A connection to the relay over HTTP/2. It is opened for the first request, and opened again if
/// it was closed.
public final class RelayConnection: Sendable {
    /// A request to the relay.
    public struct PhoneRequest: Sendable {
        public var method: String
        public let path: String
        public var fields: [Fields.Field]
        public var body: JSONObject
        public var timeout: Duration

        public init(
            _ path: String, method: String = "POST", fields: [Fields.Field] = [], body: JSONObject = [:],
            timeout: Duration = .seconds(10)
        ) {
            self.method = method
            self.path = path
            self.fields = fields
            self.body = body
            self.timeout = timeout
        }
    }

    /// A request or an answer, as an observer sees it.
    public enum Exchange: Sendable {
        case call(PhoneRequest)
        case answer(RelayAnswer)
    }

    public typealias Observer = @Sendable (Exchange) -> Void

    public let loop: EventLoop
    public let relay: WebAddress
    private let tls: TLSClientContext
    private let witness: Observer?
    private let client = Mutex<LoopBound<HTTP2Client>?>(nil)

    public init(loop: EventLoop, relay: WebAddress, tls: TLSClientContext, witness: Observer? = nil) {
        self.loop = loop
        self.relay = relay
        self.tls = tls
        self.witness = witness
    }

    /// Sends a request and returns the relay's answer, refusals included. It must be called on the
    /// loop.
    public func send(_ call: PhoneRequest) async throws(CallFailure) -> RelayAnswer {
        witness?(.call(call))
        let client = try await opened()
        let hasBody = call.method != "DELETE" && call.method != "GET"
        var fields = Fields(hasBody ? [.init("content-type", "application/json")] : [])
        for field in call.fields { fields.add(field.name, field.value) }
        let request = ClientRequest(
            method: call.method, path: call.path, authority: relay.authority, fields: fields,
            body: hasBody ? JSONWriter.write(call.body) : [])
        switch await client.value.send(request, deadline: call.timeout) {
        case .failure(.notSent(let reason)): throw .notSent(reason)
        case .failure(.ambiguous(let reason)): throw .ambiguous(reason)
        case .success(let response):
            let answer = RelayAnswer(response)
            witness?(.answer(answer))
            return answer
        }
    }

    /// Closes the connection and gives up the requests under way. It may be called on any thread.
    public func close() {
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
