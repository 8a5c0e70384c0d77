import Bytes
import Crypto
import Curl
import JSON

/// Where a browser, or a phone with UnifiedPush, is reached: a URL of its push service, and the keys that messages to it
/// are sealed with.
public struct PushSubscription: Sendable {
    public let endpoint: TransferURL
    public let publicKey: P256PublicKey
    public let auth: Secret

    /// Why a text is no subscription.
    public struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String

        init(_ description: String) { self.description = description }
    }

    static let endpointBytes = 1024

    public init(endpoint: TransferURL, publicKey: P256PublicKey, auth: Secret) {
        self.endpoint = endpoint
        self.publicKey = publicKey
        self.auth = auth
    }

    /// From base64url of the JSON that the Push API gives: `{endpoint, keys: {p256dh, auth}}`. Members that are not known
    /// here are passed over: browsers have some of their own.
    public init(token: String) throws(Fault) {
        guard let bytes = Base64URL.decode(token), let whole = (try? JSONReader.read(bytes))?.object,
            let endpoint = whole["endpoint"]?.string, let keys = whole["keys"]?.object
        else { throw Fault("must be base64url of a Push API subscription: {endpoint, keys: {p256dh, auth}}") }
        guard endpoint.utf8.count <= Self.endpointBytes, let url = TransferURL(endpoint), url.secure else {
            throw Fault("has an endpoint that is no https URL of at most \(Self.endpointBytes) bytes")
        }
        self.endpoint = url
        guard let point = keys["p256dh"]?.string.flatMap({ Base64URL.decode($0) }),
            let publicKey = try? P256PublicKey(x963: point)
        else { throw Fault("has a p256dh that is no point of P-256, 65 bytes as base64url") }
        self.publicKey = publicKey
        guard let auth = keys["auth"]?.string.flatMap({ Base64URL.decode($0) }), auth.count == 16 else {
            throw Fault("has an auth that is not 16 bytes as base64url")
        }
        self.auth = Secret(auth)
    }

    /// As it stands in `dev_token`.
    public var token: String {
        let keys: JSONObject = [
            "p256dh": .string(Base64URL.encode(publicKey.x963)), "auth": .string(Base64URL.encode(auth.reveal())),
        ]
        let whole: JSONObject = ["endpoint": .string(endpoint.text), "keys": .object(keys)]
        return Base64URL.encode(JSONWriter.write(whole))
    }
}
