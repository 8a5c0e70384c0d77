import Bytes
import JSON
import World

/// A pending challenge that the phone may show to the person.
public struct ChallengePrompt: Sendable {
    public let challenge: String
    public let nonce: String
    /// The exact bytes of the context, which the phone's signature covers.
    public let bytes: [UInt8]
    public let context: ShownContext
    /// The time left for an answer, by the relay's clock.
    public let timeLeft: Duration
    /// Whether the website wants to know the coarse place of the phone.
    public let asksPlace: Bool
    /// The demands that the phone must meet to approve; nil if there are none.
    public let demands: PostureDemands?

    /// A challenge that this phone must not answer, with the reason.
    public struct Refused: Error, Sendable, Equatable {
        /// The id of the challenge; nil if it could not be read.
        public let challenge: String?
        public let reason: String
    }

    /// Reads an entry of `/pending`, and refuses a challenge that is incomplete, unreadable or for
    /// another website.
    ///
    /// - Parameters:
    ///   - value: the entry.
    ///   - website: the website that this phone is bound to.
    ///   - now: the relay's time, from the same answer.
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
            throw Refused(challenge: challenge, reason: "it is from a website to which this phone is not bound")
        }
        self.challenge = challenge
        self.nonce = nonce
        self.bytes = bytes
        timeLeft = expiresAt - now
        asksPlace = object["asks_place"]?.bool == true
        demands = object["demands"]?.object.map { PostureDemands($0) }
    }
}
