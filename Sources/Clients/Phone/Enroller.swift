import Attestation
import Crypto
import EventLoop
import HTTP
import JSON
import TLS
import World

/// Binds a phone: it sends the new key with an activation code, and repeats this until the relay
/// confirms the binding.
///
/// Invariant: the caller stores the enrolment before the first attempt, and keeps it until the
/// last. If an answer is lost, the relay accepts the same key again, but another key would need
/// another code. Tested in `EnrollerTests.swift` and `RealRelayTests.swift`.
public final class Enroller: Sendable {
    public enum Outcome: Sendable {
        /// The phone is bound.
        ///
        /// - Parameter revocationCode: the code that the person should write down. The relay
        ///   returns it again only for the same key and activation code.
        case verified(Enrolment, revocationCode: String)
        /// The user must first approve on a phone that is already bound, with the number that this
        /// phone shows.
        case wait(device: String, number: String?)
    }

    /// The lifetime of an activation code. The phone's wait for an approval ends with it.
    public static let codeLife: Duration = .seconds(600)

    public let enrolment: Enrolment
    private let line: RelayConnection
    private let body: JSONObject
    private let dpop: DPoP

    /// - Parameters:
    ///   - root: the root with which the simulated platform of the enrolment attests the key; nil
    ///     to send no attestation.
    ///   - language: the language of the relay's texts and of messages to a user for whom the
    ///     website set none, as an Accept-Language value; nil for English.
    public init(
        _ enrolment: Enrolment, attestedBy root: SimulatedRoot? = nil, language: String? = nil, loop: EventLoop,
        randomness: any Randomness = SystemRandomness(),
        witness: RelayConnection.Observer? = nil
    ) throws(CallFailure) {
        guard case .asked(let code, let websiteKey) = enrolment.state else {
            throw .unable("the phone is already bound")
        }
        self.enrolment = enrolment
        var body: JSONObject = [
            "id_token": .string(enrolment.token), "activation_code": .string(code),
        ]
        if let pushToken = enrolment.pushToken { body.set("dev_token", .string(pushToken)) }
        do {
            let clock = RelayClock(loop.time, offset: enrolment.clockOffset)
            body.set("proof", .string(try SignedStatement.enrolment(enrolment, code: code, at: clock.now())))
            if let root, let platform = enrolment.platformAttests {
                let statement = try platform.statement(
                    about: enrolment, code: code, root: root.authority(at: clock.now()))
                body.set("attestation", .object(statement.json))
            }
            body.set("csr", .string(try enrolment.certificateRequest()))
            line = RelayConnection(
                loop: loop, relay: enrolment.relay,
                tls: try TLSClientContext(roots: .pinned(enrolment.pin), dates: .clock(clock)), clock: clock,
                pin: enrolment.pin, language: language, randomness: randomness, witness: witness)
        } catch {
            throw .unable("\(error)")
        }
        if let websiteKey { body.set("binding", .string(SignedStatement.binding(enrolment, websiteKey: websiteKey))) }
        if let name = enrolment.name { body.set("name", .string(name)) }
        body.set("platform", .string(enrolment.platform.rawValue))
        body.set("environment", .string(enrolment.environment.rawValue))
        self.body = body
        dpop = DPoP(key: enrolment.key, origin: enrolment.relay.text, time: line.clock, randomness: randomness)
    }

    /// Makes one attempt. It must be called on the loop.
    public func attempt() async throws(CallFailure) -> Outcome {
        let answer = try await line.send(.init("/verify", body: body))
        switch try answer.text("login") {
        case "verified":
            let device = try answer.id("device")
            let certificate = try answer.certificateIfAny(for: enrolment.key)
            var bound = bound(as: device, certificate)
            bound.verdict = try answer.verdict()
            return .verified(bound, revocationCode: try answer.id("revocation_code"))
        case "wait":
            return .wait(device: try answer.id("device"), number: try answer.number())
        case let word: throw answer.odd("with login \"\(word)\"")
        }
    }

    /// Finds out whether a key is bound although its attempt was refused. It must be called on the
    /// loop.
    ///
    /// The relay may have bound the key earlier with an answer that was lost. It reports this to
    /// the holder of the key, but without the revocation code.
    ///
    /// - Returns: the bound enrolment; nil if the key belongs to no active phone. The key can then
    ///   be discarded.
    public func bindingWithoutAnswer() async throws(CallFailure) -> Enrolment? {
        var body: JSONObject = ["certificate": true]
        if let request = self.body["csr"] { body.set("csr", request) }
        let answer = try await dpop.send(.init("/device", body: body), over: line)
        if answer.status == 401 {
            // A refused nonce, for example after a restart of the relay, does not show whether the
            // key is bound.
            if answer.fields["www-authenticate"]?.contains("use_dpop_nonce") == true { try answer.accepted() }
            return nil
        }
        return bound(as: try answer.id("device"), try answer.certificateIfAny(for: enrolment.key))
    }

    private func bound(as device: String, _ certificate: Certificate?) -> Enrolment {
        var bound = enrolment
        bound.clockOffset = line.clock.offset
        bound.state = .bound(device: device, certificate: certificate)
        return bound
    }

    public func close() { line.close() }
}
