import Bytes
import Crypto
import World

/// The encryption of a message for one subscriber (RFC 8291): the push service carries the message
/// and cannot read it.
public enum MessageCoding {
    /// The longest text in bytes that fits into the 4096 bytes that every push service accepts.
    public static let longest = 3993
    /// Texts are padded to one of these lengths, so that the size does not reveal the content.
    private static let lengths = [1024, 2048, longest]

    public static func seal(
        _ text: [UInt8], for subscription: PushSubscription, randomness: any Randomness
    ) throws(CryptoFailure) -> [UInt8] {
        let length = lengths.first { $0 >= text.count } ?? text.count
        return try seal(
            text, for: subscription, sender: .generate(randomness), salt: randomness.bytes(16),
            padding: length - text.count)
    }

    /// Encrypts with the given key and salt. Both must be used only once.
    static func seal(
        _ text: [UInt8], for subscription: PushSubscription, sender: P256PrivateKey, salt: [UInt8], padding: Int
    ) throws(CryptoFailure) -> [UInt8] {
        guard text.count <= longest else { throw CryptoFailure("too long for a push message") }
        let receiver = subscription.publicKey
        let key = keying(
            try sender.agree(with: receiver), auth: subscription.auth, receiver: receiver, sender: sender.publicKey)
        return try ContentCoding.seal(text, key: key, salt: salt, keyID: sender.publicKey.x963, padding: padding)
    }

    /// Decrypts a message as the subscriber does. Returns nil if the message is not for these keys.
    public static func open(_ message: [UInt8], key: P256PrivateKey, auth: Secret) -> [UInt8]? {
        ContentCoding.open(message) { keyID in
            guard let sender = try? P256PublicKey(x963: keyID), let secret = try? key.agree(with: sender) else {
                return nil
            }
            return keying(secret, auth: auth, receiver: key.publicKey, sender: sender)
        }
    }

    private static func keying(
        _ secret: Secret, auth: Secret, receiver: P256PublicKey, sender: P256PublicKey
    ) -> Secret {
        let info = Array("WebPush: info\0".utf8) + receiver.x963 + sender.x963
        return HKDF.sha256(secret, salt: auth.reveal(), info: info, count: 32)
    }
}
