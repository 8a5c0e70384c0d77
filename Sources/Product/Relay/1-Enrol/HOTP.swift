import Bytes
import Domain
import Log
import World

/// The seed of a user's hardware token: its secret, and the counter of its next code.
public struct TokenSeed: Sendable {
    public let secret: Secret
    public let counter: Int64

    public init(secret: Secret, counter: Int64) {
        self.secret = secret
        self.counter = counter
    }

    /// The allowed lengths of a secret in bytes. RFC 4226 §4 requires at least 128 bits. 128 bytes
    /// is the largest block size of the hash functions.
    static let bytes = 16...128

    /// Returns the secret from the text that makers of tokens print: base32, or hexadecimal after
    /// `hex:`.
    public static func secret(_ text: String) -> Secret? {
        let bytes =
            text.lowercased().hasPrefix("hex:")
            ? Hex.decode(text.dropFirst(4).lowercased()) : Base32.decode(text)
        guard let bytes, Self.bytes.contains(bytes.count) else { return nil }
        return Secret(bytes)
    }
}

extension Relay {
    /// The number of counters in which two consecutive codes are searched.
    static let resynchronisation: Int64 = 1000

    /// Adds a hardware token. It is active at once, because the website gave it out, and its
    /// counter is known only to the website.
    public func addHOTP(
        username: String, seed: TokenSeed, shape: CodeShape, approval: ChallengeID?, by website: Website,
        as operation: Operation
    ) async throws(Refusal) -> CodeFactor {
        let user = try await user(named: username, of: website)
        let approved = try await word(for: .hotp, approval: approval, user, website, operation)
        return try await storeHOTP(for: user, seed, shape, .approved(approved), by: website, as: operation)
    }

    func storeHOTP(
        for user: UserRow, _ seed: TokenSeed, _ shape: CodeShape, _ permission: FactorPermission, by website: Website,
        as operation: Operation
    ) async throws(Refusal) -> CodeFactor {
        let id: FactorID = operation.identifier("hotp")
        let factor = NewFactor(
            id: id, user: user.id, kind: .hotp, state: .active,
            sealed: try seal(seed.secret, row: id, kind: .hotp, user: user.id, website: website.id),
            algorithm: shape.algorithm, digits: shape.digits, counter: seed.counter,
            approvedBy: permission.approved, recovery: permission.recovery, at: operation.begunAt ?? time.now())
        _ = try await enrol(
            FactorEnrolment(
                factor, mayReplace: permission.recovery != nil, isVouchedFor: isVouchedFor(permission, website)),
            for: user, by: website, as: operation)
        guard let row = try await factors(of: user.id).first(where: { $0.kind == .hotp && $0.state == .active }) else {
            throw .notFound
        }
        return row
    }

    /// Resynchronises a token whose button was pressed too often, with two consecutive codes.
    /// Returns false if they are wrong; a wrong code counts.
    public func resynchronise(
        username: String, codes: [String], by website: Website, as operation: Operation
    ) async throws(Refusal) -> Bool {
        guard codes.count == 2, let first = codes.first, let second = codes.last else {
            throw .invalid([
                FieldFault(
                    "otps", .length,
                    LocalizedText(
                        "must be two consecutive codes", de: "muss aus zwei aufeinanderfolgenden Codes bestehen"))
            ])
        }
        let user = try await user(named: username, of: website)
        return try await trying("hotp", of: user, by: website, as: operation) { factors, _ in
            factors.first { $0.kind == .hotp && $0.state == .active }
        } check: { token, secret, _ in
            guard token.counter <= Int64.max - Self.resynchronisation - 2 else { return nil }
            var isFirst = false
            for counter in token.counter...(token.counter + Self.resynchronisation) {
                if isFirst, token.accepts(second, secret: secret, counter: counter) { return counter + 1 }
                isFirst = token.accepts(first, secret: secret, counter: counter)
            }
            return nil
        } write: { (token, failures, counter, now) async throws(StoreFailure) in
            try await self.store.resynchronise(
                token, of: user.id, failures: failures, counter: counter, at: now, as: operation)
        }
    }
}
