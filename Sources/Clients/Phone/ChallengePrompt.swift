import Bytes
import JSON
import World

/// A request that waits for the person's answer.
public struct ChallengePrompt: Sendable {
    public let challenge: String
    public let nonce: String
    /// The context's exact bytes: these are what an answer is about.
    public let bytes: [UInt8]
    public let context: ShownContext
    /// How long it may still be answered, by the relay's clock.
    public let timeLeft: Duration

    /// A request that this phone must not answer, and why.
    public struct Refused: Error, Sendable, Equatable {
        /// Nil where not even that could be read.
        public let challenge: String?
        public let reason: String
    }

    /// - Parameter website: the one that this phone is bound to.
    init(_ value: JSONValue, website: String, now: Timestamp) throws(Refused) {
        guard let object = value.object, let challenge = object["challenge"]?.string, RelayAnswer.isID(challenge)
        else {
            throw Refused(challenge: nil, reason: "it has no challenge")
        }
        guard let nonce = object["nonce"]?.string, let encoded = object["context"]?.string,
            let bytes = Base64URL.decode(encoded),
            let expiresAt = object["expires_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else {
            throw Refused(challenge: challenge, reason: "nonce, context or expires_at is missing")
        }
        do throws(ShownContext.Malformed) {
            context = try ShownContext(bytes)
        } catch {
            throw Refused(challenge: challenge, reason: error.description)
        }
        guard context.website == website else {
            throw Refused(challenge: challenge, reason: "it is of another website than this phone is bound to")
        }
        self.challenge = challenge
        self.nonce = nonce
        self.bytes = bytes
        timeLeft = expiresAt - now
    }
}
