import Bytes
import JSON
import World

/// A website's client for the relay: it manages the website's users, and asks them to approve
/// logins.
///
/// It reports what the relay says. `TwoefayRelay` also checks it, and keeps the pinned keys: begin
/// with that.
///
///     let relay = try RelayClient(
///         origin: "https://login.example.com:8080", authority: authority,
///         certificate: certificate, key: key)
///     let login = try await relay.ask(LoginRequest(username: "ada", ip: visitor))
///     show(login.asked.number)
///     let outcome = try await relay.wait(for: login)
///
/// If the relay cannot be reached, does not answer or requests a pause, the client repeats the
/// call. A repeated call takes effect only once: see `RetryPolicy`. An error that a function throws
/// is final.
public struct RelayClient: Sendable {
    let carrier: any Carrier
    let retries: RetryPolicy
    let time: any TimeSource
    let randomness: any Randomness
    /// The header fields that select the language of texts and messages.
    private var languages: [String: String] = [:]

    /// Creates a client over a given carrier.
    ///
    /// - Parameters:
    ///   - carrier: the carrier of calls, for example a wrapper of the website's own HTTP client.
    ///   - retries: when to repeat calls.
    ///   - time: the clock; tests pass another one.
    ///   - randomness: the source of randomness; tests pass another one.
    public init(
        _ carrier: any Carrier, retries: RetryPolicy = RetryPolicy(), time: any TimeSource = SystemTime(),
        randomness: any Randomness = SystemRandomness()
    ) {
        self.carrier = carrier
        self.retries = retries
        self.time = time
        self.randomness = randomness
    }

    /// Creates a client over HTTP/2 with the website's client certificate. The connection runs on
    /// its own thread.
    ///
    /// - Parameters:
    ///   - origin: the origin of the relay, as in its settings: `https://host:port`.
    ///   - authority: the authority that signed the relay's certificate (the relay's `ca.pem`), as
    ///     PEM.
    ///   - certificate: the website's certificate from `twoefay website add`, as PEM.
    ///   - key: the private key from `twoefay website add`.
    ///   - retries: when to repeat calls.
    public init(
        origin: String, authority: [UInt8], certificate: [UInt8], key: Secret, retries: RetryPolicy = RetryPolicy()
    ) throws(CallFault) {
        let carrier = try HTTP2Carrier(origin: origin, authority: authority, certificate: certificate, key: key)
        self.init(carrier, retries: retries)
    }

    /// Returns this client for one visitor, to whom the website shows the relay's texts or has
    /// messages sent. Without it the texts are in English.
    ///
    ///     let relay = relay.speaking(to: request.headers["accept-language"], chosen: session.language)
    ///
    /// - Parameters:
    ///   - accepted: the visitor's `Accept-Language`.
    ///   - chosen: the language that the visitor chose on the website, as a tag such as `de`. It has
    ///     precedence, also over the language that the website registered for the user.
    public func speaking(to accepted: String?, chosen: String? = nil) -> RelayClient {
        var client = self
        client.languages = [:]
        client.languages["accept-language"] = accepted.flatMap(Self.language)
        client.languages["accept-user-language"] = chosen.flatMap(Self.language)
        return client
    }

    /// Returns the field, unless the relay would ignore it. A visitor can send a long one, and the
    /// relay charges its bytes to the website's connection.
    static func language(_ field: String) -> String? {
        field.utf8.count <= 256 && field.utf8.allSatisfy { (0x20...0x7e).contains($0) } ? field : nil
    }

    /// Makes a call for which this library has no function.
    ///
    /// A POST gets an idempotency key, which stays the same for all attempts. If a repeated DELETE
    /// finds nothing to delete, it has succeeded.
    ///
    /// - Parameter fields: further header fields, with names in lower case.
    @discardableResult
    public func call(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String: String] = [:]
    ) async throws(CallFault) -> JSONObject {
        try await call(method, path, body, fields: fields, expecting: Self.successes)
    }

    /// Makes a call whose success has one of these statuses.
    @discardableResult
    func call(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String: String] = [:],
        expecting statuses: [Int]
    ) async throws(CallFault) -> JSONObject {
        guard path.hasPrefix("/") else { throw .unable("the path \(path) does not begin with /") }
        // The rules of repetitions know methods in capitals only.
        var call = RelayCall(method.uppercased(), path, fields: fields, body: body)
        if call.method == "POST", call.fields["idempotency-key"] == nil {
            call.fields["idempotency-key"] = Hex.encode(randomness.bytes(16))
        }
        return try await send(call, retries, expecting: statuses)
    }

    /// Sends one call, and repeats it until it has an answer or the retry policy allows no more
    /// attempts.
    func send(
        _ call: RelayCall, _ retries: RetryPolicy, expecting statuses: [Int] = RelayClient.successes
    ) async throws(CallFault) -> JSONObject {
        var call = call
        call.fields.merge(languages) { own, _ in own }
        var failures = 0
        var firstFailure: Instant?
        var isPerhapsDone = false
        while true {
            guard !Task.isCancelled else { throw .cancelled }
            do throws(CallFault) {
                return try Self.read(try await carrier.send(call), statuses)
            } catch {
                if isPerhapsDone, call.isDone(by: error) { return [:] }
                isPerhapsDone = isPerhapsDone || error.isPerhapsDone
                failures += 1
                let now = time.instant()
                let spent = now - (firstFailure ?? now)
                firstFailure = firstFailure ?? now
                guard
                    let pause = retries.pause(
                        after: error, of: call, failures: failures, spent: spent, randomness)
                else { throw error }
                await carrier.pause(for: pause)
            }
        }
    }

    /// The statuses of a success.
    static let successes = [200, 201, 202, 204]

    private static func read(_ reply: RelayReply, _ statuses: [Int]) throws(CallFault) -> JSONObject {
        guard statuses.contains(reply.status) else {
            guard !(200..<300).contains(reply.status) else { throw .odd("its status is \(reply.status)") }
            throw .refused(Problem(reply))
        }
        guard reply.status != 204 else { return [:] }
        guard reply.mediaType == "application/json", let body = reply.object else {
            throw .odd("\(reply.status) without a JSON object")
        }
        return body
    }
}
