import Bytes
import Crypto
import HTTP
import JSON
import World

/// The answer to a request for an access token.
public enum AccessTokenAnswer: Sendable, Equatable {
    /// A token of this lifetime.
    case issue(life: Duration)
    /// 400 with `invalid_grant`: the account is not accepted.
    case refuse
    /// 503.
    case unavailable
}

/// FCM's checks (HTTP v1), and those of the service that issues access tokens.
///
/// A push has no id of its own. So deliveries are counted by the challenge in its data.
struct FCMRules: ServiceRules {
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    private static let dataLimit = 4096
    private static let usualLife = Duration.seconds(3600)
    /// The tolerance for a clock that is fast or slow, and the longest life of a statement.
    private static let ahead = Duration.seconds(300)
    private static let longest = Duration.seconds(3600)
    /// The names that a message and its `android` may have here. FCM knows more.
    private static let known = ["token", "data", "android"]
    private static let knownOfAndroid = ["priority", "ttl"]

    let project: FakeProject
    let randomness: any Randomness
    var tokenAnswers = AnswerSequence<AccessTokenAnswer>()
    /// The access tokens, with the ends of their lives.
    private var tokens: [String: Timestamp] = [:]
    private(set) var issued = 0

    init(project: FakeProject, randomness: any Randomness) {
        self.project = project
        self.randomness = randomness
    }

    mutating func revokeTokens() { tokens = [:] }

    mutating func look(at request: Request, now: Timestamp) -> RequestFinding {
        if request.path == FakeProject.tokenPath { return .other(token(for: request, now: now)) }
        guard request.path.hasPrefix("/v1/projects/"), request.path.hasSuffix("/messages:send"),
            request.method == "POST", request.query == nil
        else { return .wrong(.notFound) }
        let scheme = "bearer "
        guard let field = request.fields["authorization"], field.prefix(scheme.count).lowercased() == scheme,
            let end = tokens[String(field.dropFirst(scheme.count))], now < end
        else { return .wrong(.unauthenticated) }
        guard request.path == "/v1/projects/\(project.project)/messages:send" else { return .wrong(.permissionDenied) }
        return message(in: request.body, now: now)
    }

    private func message(in body: [UInt8], now: Timestamp) -> RequestFinding {
        guard let whole = (try? JSONReader.read(body))?.object, whole.names == ["message"],
            let message = whole["message"]?.object, message.names.allSatisfy(Self.known.contains),
            let token = message["token"]?.string, let data = message["data"]?.object,
            data.members.allSatisfy({ $0.value.string != nil && Self.isDataName($0.name) })
        else { return .wrong(.invalidArgument) }
        let bytes = data.members.reduce(0) { $0 + $1.name.utf8.count + ($1.value.string?.utf8.count ?? 0) }
        guard bytes <= Self.dataLimit else { return .wrong(.invalidArgument) }
        let android = message["android"]?.object ?? [:]
        guard android.names.allSatisfy(Self.knownOfAndroid.contains),
            ["HIGH", "NORMAL"].contains(android["priority"]?.string ?? "NORMAL"),
            let life = Self.seconds(android["ttl"]?.string ?? "2419200s"), (0...2_419_200).contains(life)
        else { return .wrong(.invalidArgument) }
        guard Self.isToken(token) else { return .wrong(.invalidRegistration) }
        return .right(
            ReceivedPush(
                deviceToken: token, id: data["challenge"]?.string ?? "", topic: project.project, pushType: "data",
                collapseID: nil, expiration: (now + .seconds(life)).seconds,
                priority: android["priority"]?.string == "HIGH" ? 10 : 5, providerToken: nil, payload: data,
                payloadBytes: bytes))
    }

    /// Reads a duration in the form of Protocol Buffers: `55s`.
    private static func seconds(_ text: String) -> Int64? {
        guard text.hasSuffix("s"), text.utf8.dropLast().allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text.dropLast())
    }

    private static func isDataName(_ name: String) -> Bool {
        name != "from" && name != "message_type" && !name.hasPrefix("google") && !name.hasPrefix("gcm")
    }

    private static func isToken(_ text: String) -> Bool {
        text.utf8.count >= 32 && text.utf8.contains(UInt8(ascii: ":"))
            && text.utf8.allSatisfy { byte in
                (0x30...0x3a).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || byte == UInt8(ascii: "_")
                    || byte == UInt8(ascii: "-")
            }
    }

    // MARK: Access tokens

    private mutating func token(for request: Request, now: Timestamp) -> Response {
        let form = String(decoding: request.body, as: UTF8.self)
        let start = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
        guard request.method == "POST", request.fields["content-type"] == "application/x-www-form-urlencoded",
            form.hasPrefix(start)
        else { return Self.error(400, "unsupported_grant_type") }
        guard isStatement(String(form.dropFirst(start.count)), now: now) else {
            return Self.error(400, "invalid_grant")
        }
        switch tokenAnswers.next() ?? .issue(life: Self.usualLife) {
        case .refuse: return Self.error(400, "invalid_grant")
        case .unavailable: return Response(status: 503)
        case .issue(let life):
            let token = "fake." + Hex.encode(randomness.bytes(16))
            tokens[token] = now + life
            issued += 1
            let body: JSONObject = [
                "access_token": .string(token), "expires_in": .integer(life.components.seconds),
                "token_type": "Bearer",
            ]
            return Self.json(200, body)
        }
    }

    /// Returns whether the account's key has signed this statement for this service, for now.
    private func isStatement(_ text: String, now: Timestamp) -> Bool {
        guard let statement = project.key.verified(text), statement.header["typ"]?.string == "JWT",
            let claims = (try? JSONReader.read(statement.payload))?.object,
            claims["iss"]?.string == project.email, claims["scope"]?.string == Self.scope,
            claims["aud"]?.string?.hasSuffix(FakeProject.tokenPath) == true,
            let from = claims["iat"]?.integer, let end = claims["exp"]?.integer
        else { return false }
        let (issued, expires) = (Timestamp(seconds: from), Timestamp(seconds: end))
        return issued - now <= Self.ahead && now <= expires && expires - issued <= Self.longest
    }

    private static func error(_ status: Int, _ code: String) -> Response {
        json(status, ["error": .string(code), "error_description": "Not accepted."])
    }

    private static func json(_ status: Int, _ body: JSONObject) -> Response {
        Response(
            status: status, fields: Fields([Fields.Field("content-type", "application/json")]),
            body: JSONWriter.write(body))
    }

    // MARK: Answers

    func acceptance(_ push: ReceivedPush) -> Response {
        Self.json(200, ["name": .string("projects/\(project.project)/messages/0:\(push.id)")])
    }

    func refusal(
        _ reason: RefusalReason, id: String?, timestamp: Timestamp, _ randomness: any Randomness
    ) -> Response {
        let error: JSONObject = [
            "code": .integer(Int64(reason.status)), "message": .string(Self.sentence(reason)),
            "status": .string(Self.status(reason)), "details": .array(Self.details(reason)),
        ]
        return Self.json(reason.status, ["error": .object(error)])
    }

    private static func sentence(_ reason: RefusalReason) -> String {
        switch reason {
        case .invalidRegistration: "The registration token is not a valid FCM registration token"
        case .fcmUnregistered: "Requested entity was not found."
        default: "Refused: \(reason.rawValue)"
        }
    }

    /// The status of Google's interfaces, which several codes of FCM share.
    private static func status(_ reason: RefusalReason) -> String {
        switch reason {
        case .invalidRegistration: "INVALID_ARGUMENT"
        case .fcmUnregistered: "NOT_FOUND"
        case .senderIDMismatch: "PERMISSION_DENIED"
        case .quotaExceeded: "RESOURCE_EXHAUSTED"
        case .thirdPartyAuthError: "UNAUTHENTICATED"
        default: reason.rawValue
        }
    }

    private static func details(_ reason: RefusalReason) -> [JSONValue] {
        switch reason {
        case .invalidArgument:
            [
                .object([
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [["field": "message.data[0].value", "description": "Invalid value"]],
                ])
            ]
        case .unauthenticated, .permissionDenied, .notFound: []
        default:
            [
                .object([
                    "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
                    "errorCode": .string(reason == .invalidRegistration ? "INVALID_ARGUMENT" : reason.rawValue),
                ])
            ]
        }
    }
}
