/// The reason why a phone's decision was refused. A refused decision changes nothing and counts as
/// no failure. Log, metrics and audit use the raw values.
public enum DecisionFault: String, Error, Sendable, CaseIterable {
    /// The text is longer than any valid decision.
    case size
    /// The text is not a compact JWS over exactly the claims of a decision.
    case malformed
    case algorithm
    /// The JWS is of another type.
    case type
    /// The header names another phone than the sender.
    case key
    case signature
    /// The audience is another website or relay.
    case audience
    case challenge, nonce, request
    /// The context is not the one that was shown.
    case context
    /// An approval arrived at /failure, or a denial at /success.
    case decision
    /// A required number is missing, or a number is present although none is required.
    case number
    /// The user verification is below the policy's minimum.
    case verification
    /// The phone does not meet the demands of the policy on its attestation or posture.
    case posture
    /// The policy requires a PIN, and the answer has no signature of one.
    case pinMissing = "pin_missing"
    case pinWrong = "pin_wrong"
    case pinLocked = "pin_locked"
    /// The challenge's policy requires another form of answer.
    case policy
    /// This phone has no challenge with that id.
    case unknown
    /// The challenge has expired.
    case late
    /// The challenge has already ended otherwise.
    case decided
    /// The answer came too soon after a wrong number.
    case limited
    /// The phone was suspended, or its user locked, while the answer was processed; or the user has
    /// expired since the challenge was opened.
    case revoked

    /// The message for the developer of the phone's app. It contains nothing that the phone does
    /// not already know.
    public var message: LocalizedText {
        switch self {
        case .size:
            LocalizedText(
                "has more than \(SignedDecision.maxBytes) bytes",
                de: "hat mehr als \(SignedDecision.maxBytes) Bytes")
        case .malformed:
            LocalizedText(
                "is not a compact JWS with exactly the claims of a decision, each once",
                de: "ist kein kompaktes JWS mit genau den Claims einer Entscheidung, jeder davon einmal")
        case .algorithm:
            LocalizedText(
                "must have the alg ES256",
                de: "muss ES256 als alg haben")
        case .type:
            LocalizedText(
                "must have the typ \(SignedDecision.type)",
                de: "muss \(SignedDecision.type) als typ haben")
        case .key:
            LocalizedText(
                "must have this phone's id as its kid",
                de: "muss die Kennung dieses Telefons als kid haben")
        case .signature:
            LocalizedText(
                "must be signed by this phone's key: r and s, 64 bytes, over the first two parts",
                de:
                    "muss mit dem Schlüssel dieses Telefons signiert sein: r und s, 64 Bytes, über die ersten zwei Teile"
            )
        case .audience:
            LocalizedText(
                "must have an aud of this relay's origin, # and the website's name",
                de: "muss als aud den Ursprung dieses Relays, # und den Namen der Website haben")
        case .challenge:
            LocalizedText(
                "is for another challenge",
                de: "gehört zu einer anderen Challenge")
        case .nonce:
            LocalizedText(
                "must have this challenge's nonce",
                de: "muss die nonce dieser Challenge haben")
        case .request:
            LocalizedText(
                "must have the request of this challenge's context, or none if the context has none",
                de: "muss das request aus dem Kontext dieser Challenge haben, oder keines, wenn der Kontext keines hat")
        case .context:
            LocalizedText(
                "must have the SHA-256 of this challenge's context bytes",
                de: "muss den SHA-256-Wert der Kontext-Bytes dieser Challenge haben")
        case .decision:
            LocalizedText(
                "was sent to the wrong route: approve goes to /success, deny and fraud go to /failure",
                de: "ging an die falsche Route: approve gehört zu /success, deny und fraud gehören zu /failure")
        case .number:
            LocalizedText(
                "must have a number if it approves a challenge with a number, and otherwise none",
                de: "muss eine number haben, wenn es eine Challenge mit Zahl bestätigt, und sonst keine")
        case .verification:
            LocalizedText(
                "has a uv below the user verification that the website requires, or an older one",
                de: "hat ein uv unter der Benutzerverifizierung, die die Website verlangt, oder ein älteres")
        case .posture:
            LocalizedText(
                "came from a phone that does not meet the demands of the website",
                de: "kam von einem Telefon, das die Forderungen der Website nicht erfüllt")
        case .pinMissing:
            LocalizedText(
                "has no signature of the phone's PIN, which the website requires",
                de: "hat keine Signatur der PIN des Telefons, die die Website verlangt")
        case .pinWrong:
            LocalizedText(
                "was signed with a wrong PIN",
                de: "wurde mit einer falschen PIN signiert")
        case .pinLocked:
            LocalizedText(
                "came from a phone whose PIN is locked",
                de: "kam von einem Telefon, dessen PIN gesperrt ist")
        case .policy:
            LocalizedText(
                "is not in the form that the policy of this challenge requires",
                de: "hat nicht die Form, die die Richtlinie dieser Challenge verlangt")
        case .unknown:
            LocalizedText(
                "is for a challenge that this phone does not have",
                de: "gehört zu einer Challenge, die dieses Telefon nicht hat")
        case .late:
            LocalizedText(
                "came after the challenge had expired",
                de: "kam, nachdem die Challenge abgelaufen war")
        case .decided:
            LocalizedText(
                "came after the challenge had ended",
                de: "kam, nachdem die Challenge beendet war")
        case .limited:
            LocalizedText(
                "came too soon after a wrong number",
                de: "kam zu früh nach einer falschen Zahl")
        case .revoked:
            LocalizedText(
                "came from a phone that may no longer answer",
                de: "kam von einem Telefon, das nicht mehr antworten darf")
        }
    }
}
