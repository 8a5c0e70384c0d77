import Bytes
import Crypto

/// The credential with which the relay authenticates to Apple.
public enum APNsCredential: Sendable {
    /// A provider token made from Apple's `.p8` key, with the ids of the key and of its team.
    case token(key: P256PrivateKey, keyID: String, teamID: String)
    /// A client certificate for TLS, with its chain and its key.
    case certificate(chainPEM: [UInt8], key: Secret)
}
