/// A pending challenge that the phone may show to the person.
public struct Challenge: Sendable, Equatable {
    public let id: String
    public let nonce: String
    /// The exact bytes of the context, which the phone signs.
    public let bytes: [UInt8]
    public let context: Context
    /// The time left for an answer in milliseconds, by the relay's clock, when the list was made.
    public let timeLeft: Int64
    /// Whether the website wants to know the coarse place of the phone.
    public let asksPlace: Bool
    /// The demands that the phone must meet to approve; nil if there are none.
    public let demands: Demands?

    /// A challenge that the phone must not answer.
    public struct Refused: Error, Sendable, Equatable {
        /// The id; nil if it could not be read.
        public let id: String?
        public let reason: String
    }

    /// Reads an entry of `/pending`.
    ///
    /// - Parameters:
    ///   - website: the website of this enrolment.
    ///   - now: the relay's time, from the same answer.
    package init(_ entry: JSONValue, website: String, now: Timestamp) throws(Refused) {
        guard let object = entry.object, let id = object["challenge"]?.string, RelayAnswer.isID(id) else {
            throw Refused(id: nil, reason: "it has no id")
        }
        guard let nonce = object["nonce"]?.string, let encoded = object["context"]?.string,
            let bytes = Base64URL.decode(encoded),
            let end = object["expires_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw Refused(id: id, reason: "nonce, context or expires_at is missing") }
        do throws(Context.Refused) {
            context = try Context(bytes)
        } catch {
            throw Refused(id: id, reason: error.reason)
        }
        guard context.website.isExactly(website) else {
            throw Refused(id: id, reason: "it is from a website to which this phone is not bound")
        }
        self.id = id
        self.nonce = nonce
        self.bytes = bytes
        timeLeft = end.milliseconds - now.milliseconds
        asksPlace = object["asks_place"]?.bool == true
        demands = object["demands"]?.object.map { Demands($0) }
    }
}

/// The demands that a phone must meet to approve. The app shows those that it does not meet before
/// the person decides.
public struct Demands: Sendable, Equatable {
    public enum PIN: String, Sendable {
        /// The approval needs the PIN.
        case sign
        /// The person must set a PIN first.
        case set
        /// The phone can only deny until the PIN is reset.
        case locked
    }

    public let needsAttestation: Bool
    public let needsAssertion: Bool
    public let osVersion: String?
    public let appVersion: String?
    public let needsScreenLock: Bool
    /// The seconds for which a user verification counts; nil for any time.
    public let longestVerificationAge: Int64?
    public let pin: PIN?
    /// The demands that only a new enrolment can meet.
    public let unmet: [String]
    /// Whether the website has demands on the state of the phone.
    let asksPosture: Bool

    init(_ object: JSONObject) {
        func version(_ name: String) -> String? { object[name]?.string.map { ScreenText.visible($0, limit: 64) } }
        needsAttestation = object["attestation"]?.string == "required"
        needsAssertion = object["assertion"]?.bool == true
        osVersion = version("os_version")
        appVersion = version("app_version")
        needsScreenLock = object["screen_lock"]?.bool == true
        longestVerificationAge = object["max_uv_age"]?.integer
        pin = object["pin"]?.string.flatMap { PIN(rawValue: $0) }
        unmet = (object["unmet"]?.array ?? []).compactMap { $0.string.map { ScreenText.visible($0, limit: 64) } }
        asksPosture = object.members.contains { $0.name != "pin" && $0.name != "max_uv_age" }
    }
}
