import Crypto
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import Synchronization
import TLS
import World

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
    /// The clock of this relay. Each signed time corrects it.
    public let clock: RelayClock
    private let tls: TLSClientContext
    private let pin: [UInt8]?
    private let nextPin: [UInt8]?
    private let language: String?
    let randomness: any Randomness
    private let witness: Observer?
    private let client = Mutex<LoopBound<HTTP2Client>?>(nil)

    /// - Parameters:
    ///   - clock: the clock of this relay; by default that of the loop, not corrected.
    ///   - pin: the pin of the relay's authority. Without it, the connection asks for no signed time.
    ///   - nextPin: the pin of the authority that follows; nil without one.
    ///   - language: the language of the relay's texts, as an Accept-Language value; nil for English.
    public init(
        loop: EventLoop, relay: WebAddress, tls: TLSClientContext, clock: RelayClock? = nil, pin: [UInt8]? = nil,
        nextPin: [UInt8]? = nil, language: String? = nil, randomness: any Randomness = SystemRandomness(),
        witness: Observer? = nil
    ) {
        self.loop = loop
        self.relay = relay
        self.tls = tls
        self.clock = clock ?? RelayClock(loop.time)
        self.pin = pin
        self.nextPin = nextPin
        self.randomness = randomness
        self.language = language
        self.witness = witness
    }

    /// The relay's certificate; nil without an open connection. It must be called on the loop.
    var serverCertificate: Certificate? { client.withLock { $0 }?.value.serverCertificate }

    /// Sends a request and returns the relay's answer, refusals included. It must be called on the
    /// loop.
    public func send(_ call: PhoneRequest) async throws(CallFailure) -> RelayAnswer {
        witness?(.call(call))
        let client = try await opened()
        let hasBody = call.method != "DELETE" && call.method != "GET"
        var fields = Fields(hasBody ? [.init("content-type", "application/json")] : [])
        if let language { fields.add("accept-language", language) }
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

    /// Closes the connection, so that the next request opens another one. It must be called on the
    /// loop.
    func disconnect() { client.withLock { $0 }?.value.close() }

    private func opened() async throws(CallFailure) -> LoopBound<HTTP2Client> {
        if let client = client.withLock({ $0 }), client.value.state == .open { return client }
        do throws(ConnectionFailure) {
            return try await open()
        } catch {
            guard case .tls = error, pin != nil else { throw .notSent(error.description) }
            // The certificate may be valid, and the phone's clock wrong. If there is no signed time,
            // the first failure explains more than the second.
            let before = clock.offset
            guard let signed = try? await signedTime() else { throw .notSent(error.description) }
            // A clock that is behind is corrected here, but never one that is ahead. Whoever has
            // the key of an expired certificate could otherwise sign a time at which it was valid.
            guard signed.offset > before else {
                let ahead = before - signed.offset
                guard ahead > Self.tolerance else { throw .notSent(error.description) }
                throw .notSent(
                    "\(error.description); by the relay's time, the phone's clock is \(ahead.components.seconds) s "
                        + "ahead: set the clock, or use 'twoefay phone time'")
            }
            guard (try? await adopt(signed)) != nil, let client = client.withLock({ $0 }),
                client.value.state == .open
            else { throw .notSent(error.description) }
            return client
        }
    }

    private func open() async throws(ConnectionFailure) -> LoopBound<HTTP2Client> {
        let fresh = LoopBound(
            HTTP2Client(
                loop: loop, host: relay.host, port: relay.port ?? 443, tls: tls, log: Log(minimum: .error)),
            on: loop)
        try await fresh.value.connect()
        client.withLock { $0 = fresh }
        return fresh
    }
}

/// The relay's time.
extension RelayConnection {
    /// The difference of the clocks above which the phone asks for a signed time by itself: a fraction
    /// of the day by which a DPoP proof may be wrong.
    static let tolerance: Duration = .seconds(3600)

    /// Asks the relay for its signed time, and corrects the clock of this relay, also to an earlier
    /// time. So only the person may request it. It must be called on the loop.
    @discardableResult
    public func synchronise() async throws(CallFailure) -> SignedTime {
        let signed = try await signedTime()
        try await adopt(signed)
        return signed
    }

    /// Returns the relay's signed time. The dates of the certificates were not checked.
    private func signedTime() async throws(CallFailure) -> SignedTime {
        guard let pin else { throw .unable("the relay's time is not known without the pin of its authority") }
        let asking: RelayConnection
        do {
            asking = RelayConnection(
                loop: loop, relay: relay,
                tls: try TLSClientContext(roots: .pinned(pin, next: nextPin), dates: .unchecked),
                clock: clock, witness: witness)
        } catch {
            throw .unable("\(error)")
        }
        defer { asking.close() }
        return try await TimeRequest.send(over: asking, randomness: randomness)
    }

    /// Corrects the clock of this relay by a signed time.
    ///
    /// The connection is opened again, so that the certificate is checked at the time that was
    /// learned. If it is not valid then, the clock stays as it was.
    private func adopt(_ signed: SignedTime) async throws(CallFailure) {
        let before = clock.offset
        clock.offset = signed.offset
        let old = client.withLock { $0 }
        do throws(ConnectionFailure) {
            _ = try await open()
        } catch {
            clock.offset = before
            throw .notSent("at the relay's own time: \(error.description)")
        }
        old?.value.close()
    }

    /// Corrects the clock if the `date` of an answer shows that it is wrong. Anyone on the way could
    /// not have changed the date, but it has no nonce and only whole seconds. So it is a reason to
    /// ask, and no more.
    ///
    /// The clock may go back here, because the dates of the connection's certificate were checked.
    /// But the signed time comes over another connection, so it must not be much earlier than the
    /// date.
    ///
    /// - Returns: true if the clock was corrected.
    func corrected(by answer: RelayAnswer) async -> Bool {
        guard pin != nil, let date = answer.date else { return false }
        let before = clock.offset
        let difference = date - clock.now()
        guard difference > Self.tolerance || difference < .zero - Self.tolerance else { return false }
        guard let signed = try? await signedTime(), signed.offset > before + difference - Self.tolerance else {
            return false
        }
        return (try? await adopt(signed)) != nil
    }
}
