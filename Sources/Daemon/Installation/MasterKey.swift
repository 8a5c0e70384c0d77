import Bytes
import Crypto
import World

/// The key under which secrets are sealed and from which operations draw what only this installation can know.
/// Its file holds 64 hexadecimal digits.
public struct MasterKey: Sendable {
    public let secret: Secret

    public static func generate(_ randomness: any Randomness) -> MasterKey {
        MasterKey(secret: Secret(randomness.bytes(32)))
    }

    private init(secret: Secret) { self.secret = secret }

    init?(file: [UInt8]) {
        let text = String(decoding: file, as: UTF8.self)
        guard let bytes = Hex.decode(text.hasSuffix("\n") ? text.dropLast() : text[...]), bytes.count == 32 else {
            return nil
        }
        secret = Secret(bytes)
    }

    var file: [UInt8] { Array((Hex.encode(secret.reveal()) + "\n").utf8) }

    /// Seals under a key of its own, named by what it is made of, so that two keys can be told apart one day.
    public func sealer() throws(CryptoFailure) -> Sealer {
        let key = HMAC.sha256(key: secret, Array("twoefay sealing".utf8))
        return try Sealer(keys: [Sealer.Key(id: Hex.encode(SHA256.hash(key).prefix(4)), key: Secret(key))])
    }
}

extension Settings {
    /// The master key alone, for commands that need nothing else.
    public func loadMasterKey() throws(Failure) -> MasterKey {
        let path = path(of: masterKey)
        let file: [UInt8]
        do throws(Files.Problem) {
            file = try Files.readPrivate(path)
        } catch {
            throw Failure(
                .failed, error.text, next: "It was made by 'twoefay init'; bring it back from your copy of it.")
        }
        guard let key = MasterKey(file: file) else {
            throw Failure(
                .failed, "\(path): must hold 64 hexadecimal digits", next: "Bring it back from your copy of it.")
        }
        return key
    }
}
