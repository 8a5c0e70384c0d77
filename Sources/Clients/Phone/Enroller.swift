import Crypto
import EventLoop
import HTTP
import JSON
import TLS
import World

/// Binds a phone: sends its new key with an activation code, until the relay says that it is bound.
///
/// The enrolment must be kept before the first attempt and until the last: the relay binds one key once, so that the same
/// may be sent again after an answer that nobody saw; another key would need another code.
public final class Enroller: Sendable {
    public enum Outcome: Sendable {
        /// - Parameter revocationCode: for the person to write down; the relay does not say it again to anybody else.
        case verified(Enrolment, revocationCode: String)
        /// The user has to approve first, on a phone that is bound already, with the number that this one shows.
        case wait(device: String, number: String?)
    }

    /// A code lives for ten minutes, and the time that its phone waits for an approval ends with it.
    public static let codeLife: Duration = .seconds(600)

    public let enrolment: Enrolment
    private let line: RelayConnection
    private let body: JSONObject
    private let dpop: DPoP

    public init(
        _ enrolment: Enrolment, loop: EventLoop, randomness: any Randomness = SystemRandomness(),
        witness: RelayConnection.Observer? = nil
    ) throws(CallFailure) {
        guard case .asked(let code, let websiteKey) = enrolment.state else {
            throw .unable("the phone is bound already")
        }
        self.enrolment = enrolment
        var body: JSONObject = [
            "id_token": .string(enrolment.token), "activation_code": .string(code),
        ]
        if let pushToken = enrolment.pushToken { body.set("dev_token", .string(pushToken)) }
        do {
            body.set(
                "proof", .string(try SignedStatement.enrolment(enrolment, code: code, at: loop.time.now())))
            line = RelayConnection(
                loop: loop, relay: enrolment.relay, tls: try TLSClientContext(roots: .pinned(enrolment.pin)),
                witness: witness)
        } catch {
            throw .unable("\(error)")
        }
        if let websiteKey { body.set("binding", .string(SignedStatement.binding(enrolment, websiteKey: websiteKey))) }
        if let name = enrolment.name { body.set("name", .string(name)) }
        body.set("platform", .string(enrolment.platform.rawValue))
        body.set("environment", .string(enrolment.environment.rawValue))
        self.body = body
        dpop = DPoP(key: enrolment.key, origin: enrolment.relay.text, time: loop.time, randomness: randomness)
    }

    /// On the loop: one attempt.
    public func attempt() async throws(CallFailure) -> Outcome {
        let answer = try await line.send(.init("/verify", body: body))
        switch try answer.text("login") {
        case "verified":
            let device = try answer.id("device")
            let certificate = try answer.certificate(for: enrolment.key)
            return .verified(
                bound(as: device, certificate), revocationCode: try answer.id("revocation_code"))
        case "wait":
            return .wait(device: try answer.id("device"), number: try answer.number())
        case let word: throw answer.odd("with login \"\(word)\"")
        }
    }

    /// On the loop: what became of a key whose attempt is refused. The relay may have bound it before, with an answer that
    /// nobody saw; it says so to whoever has the key, but not the revocation code.
    ///
    /// - Returns: nil if the key is no active phone's: nothing is lost with it.
    public func bindingWithoutAnswer() async throws(CallFailure) -> Enrolment? {
        let answer = try await dpop.send(.init("/device", body: ["certificate": true]), over: line)
        if answer.status == 401 {
            // A nonce that is not taken, as by a relay that was just started, says nothing of the key.
            if answer.fields["www-authenticate"]?.contains("use_dpop_nonce") == true { try answer.accepted() }
            return nil
        }
        return bound(as: try answer.id("device"), try answer.certificate(for: enrolment.key))
    }

    private func bound(as device: String, _ certificate: Certificate) -> Enrolment {
        var bound = enrolment
        bound.state = .bound(device: device, certificate: certificate)
        return bound
    }

    public func close() { line.close() }
}
