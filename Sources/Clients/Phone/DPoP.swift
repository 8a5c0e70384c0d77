import Bytes
import Crypto
import HTTP
import JSON
import Synchronization
import World

/// Says with each request that the sender holds the key (RFC 9449): for phones that cannot show a client certificate.
final class DPoP: Sendable {
    static let field = "dpop"
    static let nonceField = "dpop-nonce"

    private let key: P256PrivateKey
    private let origin: String
    private let time: any TimeSource
    private let randomness: any Randomness
    /// The newest that the relay handed out.
    private let nonce = Mutex<String?>(nil)

    init(key: P256PrivateKey, origin: String, time: any TimeSource, randomness: any Randomness) {
        self.key = key
        self.origin = origin
        self.time = time
        self.randomness = randomness
    }

    /// A proof for one request, which no other can use, and the nonce in it.
    private func proof(_ method: String, _ path: String) throws(CryptoFailure) -> (text: String, nonce: String?) {
        let nonce = nonce.withLock { $0 }
        let text = try Self.proof(
            method, origin + path, nonce: nonce, id: Base64URL.encode(randomness.bytes(16)), at: time.now(), key: key)
        return (text, nonce)
    }

    /// - Parameter url: without query and fragment.
    static func proof(
        _ method: String, _ url: String, nonce: String?, id: String, at now: Timestamp, key: P256PrivateKey
    ) throws(CryptoFailure) -> String {
        var claims: JSONObject = [
            "jti": .string(id), "htm": .string(method), "htu": .string(url), "iat": .integer(now.seconds),
        ]
        if let nonce { claims.set("nonce", .string(nonce)) }
        return try JWS.sign(
            header: ["typ": "dpop+jwt", "jwk": .object(key.publicKey.jwk)], payload: JSONWriter.write(claims), key: key)
    }

    /// Sends the call with a proof, and again, once, with a nonce that it should have had.
    func send(_ call: RelayConnection.PhoneRequest, over line: RelayConnection) async throws(CallFailure) -> RelayAnswer
    {
        var hasTriedAgain = false
        while true {
            var proved = call
            let used: String?
            do {
                let proof = try proof(call.method, call.path)
                proved.fields.append(.init(Self.field, proof.text))
                used = proof.nonce
            } catch {
                throw .unable(error.description)
            }
            let answer = try await line.send(proved)
            // The first proof has no nonce yet, or one that is too old by now.
            guard takes(answer, to: used), !hasTriedAgain else { return answer }
            hasTriedAgain = true
        }
    }

    /// Keeps the nonce of an answer. True if the request is worth sending again: it was refused, and there is a nonce now
    /// that it did not have.
    private func takes(_ answer: RelayAnswer, to used: String?) -> Bool {
        guard let fresh = answer.fields[Self.nonceField], !fresh.isEmpty else { return false }
        nonce.withLock { $0 = fresh }
        return answer.status == 401 && fresh != used
    }
}
