import Bytes
import JSON
import World

/// The relay, as a website sees it: who its users are, and whether one of them says yes.
///
///     let relay = try RelayClient(
///         origin: "https://login.example.com:8080", authority: authority, certificate: certificate, key: key)
///     let login = try await relay.ask(LoginRequest(username: "ada", ip: visitor))
///     show(login.asked.number)
///     let outcome = try await relay.wait(for: login)
///
/// Every call is tried again where the relay cannot be reached, gives no answer, or asks for patience, and is done once all
/// the same: see `RetryPolicy`. What it throws is final.
public struct RelayClient: Sendable {
    let carrier: any RelayTransport
    let retries: RetryPolicy
    let time: any TimeSource
    let randomness: any Randomness

    /// Over a carrier of the website's own. Time and chance are the machine's unless a test gives others.
    public init(
        _ carrier: any RelayTransport, retries: RetryPolicy = RetryPolicy(), time: any TimeSource = SystemTime(),
        randomness: any Randomness = SystemRandomness()
    ) {
        self.carrier = carrier
        self.retries = retries
        self.time = time
        self.randomness = randomness
    }

    /// Over HTTP/2 with the website's client certificate, on a thread of its own.
    ///
    /// - Parameters:
    ///   - origin: of the relay, as in its settings: `https://host:port`.
    ///   - authority: PEM; what signed the relay's certificate (its `ca.pem`).
    ///   - certificate: PEM; with `key` what `twoefay website add` wrote.
    public init(
        origin: String, authority: [UInt8], certificate: [UInt8], key: Secret, retries: RetryPolicy = RetryPolicy()
    ) throws(CallFault) {
        let carrier = try HTTP2Transport(origin: origin, authority: authority, certificate: certificate, key: key)
        self.init(carrier, retries: retries)
    }

    /// For what has no function here. A POST gets its Idempotency-Key, and keeps it through every try. A DELETE that had to be
    /// repeated has succeeded where there is nothing any more.
    ///
    /// - Parameter fields: further ones, names in lower case.
    @discardableResult
    public func call(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String: String] = [:]
    ) async throws(CallFault) -> JSONObject {
        var call = RelayCall(method, path, fields: fields, body: body)
        if method == "POST", call.fields["idempotency-key"] == nil {
            call.fields["idempotency-key"] = Hex.encode(randomness.bytes(16))
        }
        return try await send(call, retries)
    }

    /// One call, until it has its answer or there is no hope for one.
    func send(_ call: RelayCall, _ retries: RetryPolicy) async throws(CallFault) -> JSONObject {
        let start = time.instant()
        var failures = 0
        var isPerhapsDone = false
        while true {
            guard !Task.isCancelled else { throw .cancelled }
            do throws(CallFault) {
                return try Self.read(try await carrier.send(call))
            } catch {
                if isPerhapsDone, call.isDone(by: error) { return [:] }
                isPerhapsDone = isPerhapsDone || error.isPerhapsDone
                failures += 1
                let spent = time.instant() - start
                guard
                    let pause = retries.pause(
                        after: error, of: call, failures: failures, spent: spent, randomness)
                else { throw error }
                await carrier.pause(for: pause)
            }
        }
    }

    private static func read(_ reply: RelayReply) throws(CallFault) -> JSONObject {
        guard (200..<300).contains(reply.status) else { throw .refused(Problem(reply)) }
        guard !reply.body.isEmpty else { return [:] }
        guard let body = (try? JSONReader.read(reply.body))?.object else {
            throw .odd("\(reply.status) without a JSON object")
        }
        return body
    }
}
