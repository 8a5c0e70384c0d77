import Bytes
import Crypto
import Daemon
import EventLoop
import JSON
import Synchronization
import TLS
import World

/// The device side: makes its key, is bound by an activation, and answers with the certificate that it got for its key.
public final class Phone: Sendable {
    public enum Decision: Sendable {
        /// With the number that the person read on the website, where there is one.
        case approve(number: String?)
        case deny
    }

    /// Where the push service finds it.
    public let pushToken: String
    public var publicKey: P256PublicKey { key.publicKey }
    private let key: P256PrivateKey
    private let loop: EventLoop
    private let time: any TimeSource
    private let witness: Witness
    /// With the certificate, once bound.
    private let line = Mutex<RelayLine?>(nil)

    public init(
        loop: EventLoop, time: any TimeSource, randomness: any Randomness, witness: @escaping Witness = { _ in }
    ) throws(CryptoFailure) {
        key = try P256PrivateKey.generate(randomness)
        pushToken = Hex.encode(randomness.bytes(32))
        self.loop = loop
        self.time = time
        self.witness = witness
    }

    /// Believes a relay only whose authority has the key that the activation names.
    public func enrol(_ activation: ActivationURI, name: String) async throws(CallFailure) {
        let stranger = RelayLine(loop: loop, relay: activation.relay, tls: try tls(activation))
        defer { stranger.close() }
        let call = RelayLine.Call(
            path: "/verify",
            body: [
                "id_token": .string(activation.token), "dev_token": .string(pushToken),
                "activation_code": .string(activation.code), "proof": .string(try proof(activation)),
                "name": .string(name), "platform": "ios",
            ])
        witness(Message(.phone, .relay, call))
        let answer = try await stranger.send(call)
        witness(Message(.relay, .phone, answer))
        let certificate = Array(try answer.text("certificate").utf8)
        let bound = RelayLine(loop: loop, relay: activation.relay, tls: try tls(activation, certificate: certificate))
        line.withLock { $0 = bound }
    }

    /// What the relay makes of the answer: `success` or `failure`.
    public func answer(_ decision: Decision, to challenge: String) async throws(CallFailure) -> String {
        guard let line = line.withLock({ $0 }) else { throw .unable("the phone is not bound") }
        var body: JSONObject = ["challenge": .string(challenge)]
        var path = "/failure"
        if case .approve(let number) = decision {
            path = "/success"
            if let number { body.set("number", .string(number)) }
        }
        let call = RelayLine.Call(path: path, body: body)
        witness(Message(.phone, .relay, call))
        let answer = try await line.send(call)
        witness(Message(.relay, .phone, answer))
        return try answer.text("login")
    }

    public func close() { line.withLock { $0 }?.close() }

    private func tls(_ activation: ActivationURI, certificate: [UInt8]? = nil) throws(CallFailure) -> TLSClientContext {
        do {
            return try TLSClientContext(
                roots: .pinned(activation.pin), certificateChainPEM: certificate, privateKeyPEM: try key.pem())
        } catch {
            throw .unable("the phone's certificate does not work: \(error)")
        }
    }

    /// Says that it holds the key, and binds that key to this activation and this push token alone.
    private func proof(_ activation: ActivationURI) throws(CallFailure) -> String {
        let claims: JSONObject = [
            "v": 1, "aud": .string("\(activation.relay.settingsText)#\(activation.website)"),
            "id_token": .string(activation.token), "activation_code": .string(activation.code),
            "dev_token": .string(pushToken), "iat": .integer(time.now().seconds),
        ]
        do throws(CryptoFailure) {
            return try JWS.sign(
                header: ["typ": "twoefay-enrol+jwt", "jwk": .object(key.publicKey.jwk)],
                payload: JSONWriter.write(claims), key: key)
        } catch {
            throw .unable(error.description)
        }
    }
}
