import Bytes
import EventLoop
import HTTP
import JSON
import Phone
import TLS
import World

/// A website that asks the relay before it lets somebody in. It proves who it is with its client certificate.
public final class Website: Sendable {
    /// A user who was made known, and what binds the user's phone.
    public struct Registered: Sendable {
        public let token: String
        public let activation: String
    }

    public struct LoginQuestion: Sendable {
        public let token: String
        public let ip: String
        public let userAgent: String
        public var service = "members"
        public var expiresIn: Int64?
    }

    public struct Asked: Sendable {
        public let challenge: String
        /// The person carries it to the phone.
        public let number: String?
        public let expiresAt: Timestamp
    }

    /// How a challenge ended.
    public struct Outcome: Sendable, Equatable {
        /// `success` or `failure`.
        public let login: String
        public let reason: String?
        /// `signed` where the phone did; nil where nobody answered.
        public let proof: String?

        public init(login: String, reason: String? = nil, proof: String? = nil) {
            self.login = login
            self.reason = reason
            self.proof = proof
        }
    }

    private let line: RelayLine
    private let randomness: any Randomness
    private let witness: Witness

    /// - Parameter authority: PEM; signed the relay's certificate.
    public init(
        loop: EventLoop, relay: WebAddress, authority: [UInt8], certificate: [UInt8], key: Secret,
        randomness: any Randomness, witness: @escaping Witness = { _ in }
    ) throws(TLSFailure) {
        let tls = try TLSClientContext(
            roots: .pem(authority), certificateChainPEM: certificate, privateKeyPEM: key)
        line = RelayLine(loop: loop, relay: relay, tls: tls)
        self.randomness = randomness
        self.witness = witness
    }

    public func register(username: String, email: String) async throws(CallFailure) -> Registered {
        let answer = try await post("/register", ["username": .string(username), "email": .string(email)])
        guard let uri = try answer.accepted()["activation"]?.object?["uri"]?.string else {
            throw answer.odd("without an activation")
        }
        return Registered(token: try answer.text("token"), activation: uri)
    }

    public func login(_ question: LoginQuestion) async throws(CallFailure) -> Asked {
        var body: JSONObject = [
            "token": .string(question.token), "request": .string(Hex.encode(randomness.bytes(16))),
            "service": .string(question.service), "ip": .string(question.ip),
            "user_agent": .string(question.userAgent),
        ]
        if let seconds = question.expiresIn { body.set("expires_in", .integer(seconds)) }
        let answer = try await post("/login", body)
        guard let expiresAt = Timestamp(rfc3339: try answer.text("expires_at")) else {
            throw answer.odd("without a time")
        }
        return Asked(
            challenge: try answer.text("challenge"), number: try answer.accepted()["number"]?.string,
            expiresAt: expiresAt)
    }

    /// Waits until the challenge has its end: the relay holds each request for as long as a minute.
    public func outcome(of challenge: String) async -> Result<Outcome, CallFailure> {
        do throws(CallFailure) {
            while true {
                let answer = try await repeated(
                    RelayLine.Call(
                        "/auth", fields: [.init("prefer", "wait=60")], body: ["challenge": .string(challenge)],
                        patience: .seconds(70)))
                let login = try answer.text("login")
                if login != "wait" {
                    let told = try answer.accepted()
                    return .success(
                        Outcome(login: login, reason: told["reason"]?.string, proof: told["proof"]?.string))
                }
            }
        } catch {
            return .failure(error)
        }
    }

    public func close() { line.close() }

    /// The same key with every repetition: whatever became of the first one, it is done once.
    private func post(_ path: String, _ body: JSONObject) async throws(CallFailure) -> RelayAnswer {
        let key = HTTP.Fields.Field("idempotency-key", Hex.encode(randomness.bytes(16)))
        return try await repeated(RelayLine.Call(path, fields: [key], body: body))
    }

    /// Tries again where the relay was not reached, gave no answer, or asked for patience.
    private func repeated(_ call: RelayLine.Call) async throws(CallFailure) -> RelayAnswer {
        witness(Message(.website, .relay, call))
        var attempts = 0
        while true {
            attempts += 1
            do throws(CallFailure) {
                let answer = try await line.send(call)
                guard [429, 503].contains(answer.status), attempts < 5 else {
                    witness(Message(.relay, .website, answer))
                    return answer
                }
            } catch {
                guard attempts < 5 else { throw error }
            }
            await line.loop.sleep(for: .milliseconds(200 << attempts))
        }
    }
}
