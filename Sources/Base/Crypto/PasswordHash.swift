import Bytes
import COpenSSL
import World

/// scrypt (RFC 7914): derives a key from a password, with a cost in time and memory for each guess.
package enum Scrypt {
    package static func derive(
        from password: Secret, salt: [UInt8], cost: PasswordHash.Cost, count: Int
    ) throws(CryptoFailure) -> Secret {
        var key = [UInt8](repeating: 0, count: count)
        // An empty array may have a null address, which OpenSSL takes for a missing password.
        let letters = (password.count == 0 ? [0] : password.reveal()).map { CChar(bitPattern: $0) }
        guard
            EVP_PBE_scrypt(
                letters, password.count, salt, salt.count, cost.n, UInt64(cost.r), UInt64(cost.p), cost.memory, &key,
                count) == 1
        else { throw CryptoFailure.drained("hashing a password") }
        return Secret(key)
    }
}

/// The stored hash of a password. Making or comparing one blocks a thread for a good part of a
/// second, so never do it on a loop.
public struct PasswordHash: Sendable, Equatable {
    /// The cost of one guess. `n` and `r` determine the memory (128·n·r bytes); together with `p`
    /// they determine the time.
    public struct Cost: Sendable, Equatable {
        public let logarithmOfN: Int
        public let r: Int
        public let p: Int

        /// The default: 32 MiB, and a third of a second on an ordinary processor, as OWASP
        /// recommends.
        public static let usual = Cost(trusted: 15, r: 8, p: 3)

        private init(trusted logarithm: Int, r: Int, p: Int) {
            (logarithmOfN, self.r, self.p) = (logarithm, r, p)
        }

        /// Makes a cost from a stored text. Returns nil if it is invalid, or would need more than a
        /// gigabyte or minutes.
        public init?(logarithmOfN: Int, r: Int, p: Int) {
            guard (1...20).contains(logarithmOfN), (1...8).contains(r), (1...16).contains(p) else { return nil }
            self.init(trusted: logarithmOfN, r: r, p: p)
        }

        fileprivate var n: UInt64 { 1 << UInt64(logarithmOfN) }

        /// The memory that OpenSSL may use. Its default limit is too low for the usual cost.
        fileprivate var memory: UInt64 { 128 * UInt64(r) * (n + UInt64(p) + 2) + (1 << 20) }
    }

    public let cost: Cost
    private let salt: [UInt8]
    private let key: [UInt8]

    /// Hashes a new password with a new salt.
    public init(_ password: Secret, cost: Cost = .usual, randomness: any Randomness) throws(CryptoFailure) {
        salt = randomness.bytes(16)
        key = try Scrypt.derive(from: password, salt: salt, cost: cost, count: 32).reveal()
        self.cost = cost
    }

    public func matches(_ password: Secret) -> Bool {
        guard let derived = try? Scrypt.derive(from: password, salt: salt, cost: cost, count: key.count) else {
            return false
        }
        return Secret.matches(derived.reveal(), key)
    }

    // MARK: The stored text

    /// The stored text: `$scrypt$ln=15,r=8,p=3$SALT$KEY`, with base64 without padding, as other
    /// programs write it too.
    public var text: String {
        "$scrypt$ln=\(cost.logarithmOfN),r=\(cost.r),p=\(cost.p)$\(Self.unpadded(salt))$\(Self.unpadded(key))"
    }

    /// Parses a stored text. Returns nil if `text` cannot have written it.
    public init?(text: String) {
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1] == "scrypt", let cost = Self.cost(parts[2]),
            let salt = Self.bytes(parts[3]), (8...64).contains(salt.count), let key = Self.bytes(parts[4]),
            (16...64).contains(key.count)
        else { return nil }
        (self.cost, self.salt, self.key) = (cost, salt, key)
    }

    private static func cost(_ text: Substring) -> Cost? {
        let values = text.split(separator: ",", omittingEmptySubsequences: false)
        guard values.count == 3, values[0].hasPrefix("ln="), values[1].hasPrefix("r="), values[2].hasPrefix("p="),
            let logarithm = Int(values[0].dropFirst(3)), let r = Int(values[1].dropFirst(2)),
            let p = Int(values[2].dropFirst(2))
        else { return nil }
        return Cost(logarithmOfN: logarithm, r: r, p: p)
    }

    private static func unpadded(_ bytes: [UInt8]) -> String { String(Base64.encode(bytes).prefix { $0 != "=" }) }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        guard !text.contains("=") else { return nil }
        return Base64.decode(text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4))
    }
}
