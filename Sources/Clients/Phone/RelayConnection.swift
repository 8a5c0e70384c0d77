import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS

/// One side's way to the relay: an HTTP/2 connection that is opened when it is first needed, and again when it is gone.
public final class RelayConnection: Sendable {
    /// What goes over it.
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

    /// For who wants to look on.
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

    /// On the loop. Whatever the relay answers comes back, refusals too.
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

    /// On whatever thread; what is under way is given up.
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
