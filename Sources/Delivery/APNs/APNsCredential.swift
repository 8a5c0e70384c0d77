import Bytes
import Crypto

/// How the relay proves to the push service who it is.
public enum APNsCredential: Sendable {
    /// Apple's `.p8` key, with the ids of the key and of the team it belongs to.
    case token(key: P256PrivateKey, keyID: String, teamID: String)
    /// A certificate (with its chain) and its key, shown in TLS.
    case certificate(chainPEM: [UInt8], key: Secret)
}
