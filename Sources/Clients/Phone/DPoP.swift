import Bytes
import Crypto
import HTTP
import JSON
import Synchronization
import World

/// Adds a DPoP proof to each request (RFC 9449), for phones that cannot use a client certificate.
///
/// A proof shows that the sender holds the key. It covers the method, the URL and the time, and a
/// nonce from the relay if there is one. It is valid for one request. The relay refuses a proof
/// with a missing or old nonce (401) and returns a fresh nonce. `send` then repeats the request
/// once. It also does so if the phone's clock was wrong, at the time that the relay has signed.
final class DPoP: Sendable {
    static let field = "dpop"
    static let nonceField = "dpop-nonce"

    private let key: P256PrivateKey
    private let origin: String
    private let time: any TimeSource
    private let randomness: any Randomness
    /// The latest nonce from the relay.
    private let nonce = Mutex<String?>(nil)

    init(key: P256PrivateKey, origin: String, time: any TimeSource, randomness: any Randomness) {
        self.key = key
        self.origin = origin
        self.time = time
        self.randomness = randomness
    }

    /// Returns a proof for one request, and the nonce in it. No other request can use the proof.
    private func proof(_ method: String, _ path: String) throws(CryptoFailure) -> (text: String, nonce: String?) {
        let nonce = nonce.withLock { $0 }
        let text = try Self.proof(
            method, origin + path, nonce: nonce, id: Base64URL.encode(randomness.bytes(16)), at: time.now(), key: key)
        return (text, nonce)
    }

    /// Returns a DPoP proof.
    ///
    /// - Parameters:
    ///   - url: the URL without query and fragment.
    ///   - nonce: the relay's nonce; nil if there is none yet.
    ///   - id: the `jti`, which must be unique.
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

    /// Sends a request with a proof. If the relay refuses the nonce, it sends the request again
    /// once, with a fresh nonce. If its clock was wrong, it sends the request again, too.
    func send(_ call: RelayConnection.PhoneRequest, over line: RelayConnection) async throws(CallFailure) -> RelayAnswer
    {
        var hasTriedAgain = false
        var hasAskedForTime = false
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
            let isFresh = takes(answer, to: used)
            // The relay refuses a proof whose time is more than a day wrong.
            if answer.status == 401, !hasAskedForTime {
                hasAskedForTime = true
                if await line.corrected(by: answer) { continue }
            }
            // The first proof has no nonce yet, or one that has expired.
            guard isFresh, !hasTriedAgain else { return answer }
            hasTriedAgain = true
        }
    }

    /// Stores the nonce of an answer.
    ///
    /// - Returns: true if the request was refused and the answer has a nonce that the request did
    ///   not have.
    private func takes(_ answer: RelayAnswer, to used: String?) -> Bool {
        guard let fresh = answer.fields[Self.nonceField], !fresh.isEmpty else { return false }
        nonce.withLock { $0 = fresh }
        return answer.status == 401 && fresh != used
    }
}
