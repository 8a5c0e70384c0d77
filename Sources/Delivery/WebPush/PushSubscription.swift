import Bytes
import Crypto
import Curl
import JSON

/// The push subscription of a browser, or of a phone with UnifiedPush: the URL at its push service,
/// and the keys that encrypt its messages.
public struct PushSubscription: Sendable {
    public let endpoint: TransferURL
    public let publicKey: P256PublicKey
    public let auth: Secret

    /// The reason why a text is not a subscription.
    public enum Fault: String, Error, Sendable, CaseIterable, CustomStringConvertible {
        case form, endpoint, key, auth

        public var description: String {
            switch self {
            case .form: "must be base64url of a Push API subscription: {endpoint, keys: {p256dh, auth}}"
            case .endpoint: "must have an endpoint that is an https URL of at most \(endpointBytes) bytes"
            case .key: "must have a p256dh that is a point of P-256, 65 bytes as base64url"
            case .auth: "must have an auth of 16 bytes as base64url"
            }
        }
    }

    public static let endpointBytes = 1024

    public init(endpoint: TransferURL, publicKey: P256PublicKey, auth: Secret) {
        self.endpoint = endpoint
        self.publicKey = publicKey
        self.auth = auth
    }

    /// Reads base64url of the Push API's JSON: `{endpoint, keys: {p256dh, auth}}`. Unknown members
    /// are ignored, since browsers add their own.
    public init(token: String) throws(Fault) {
        guard let bytes = Base64URL.decode(token), let whole = (try? JSONReader.read(bytes))?.object,
            let endpoint = whole["endpoint"]?.string, let keys = whole["keys"]?.object
        else { throw .form }
        guard endpoint.utf8.count <= Self.endpointBytes, let url = TransferURL(endpoint), url.secure else {
            throw .endpoint
        }
        self.endpoint = url
        guard let point = keys["p256dh"]?.string.flatMap({ Base64URL.decode($0) }),
            let publicKey = try? P256PublicKey(x963: point)
        else { throw .key }
        self.publicKey = publicKey
        guard let auth = keys["auth"]?.string.flatMap({ Base64URL.decode($0) }), auth.count == 16 else {
            throw .auth
        }
        self.auth = Secret(auth)
    }

    /// The text form, as in `dev_token`.
    public var token: String {
        let keys: JSONObject = [
            "p256dh": .string(Base64URL.encode(publicKey.x963)), "auth": .string(Base64URL.encode(auth.reveal())),
        ]
        let whole: JSONObject = ["endpoint": .string(endpoint.text), "keys": .object(keys)]
        return Base64URL.encode(JSONWriter.write(whole))
    }
}
