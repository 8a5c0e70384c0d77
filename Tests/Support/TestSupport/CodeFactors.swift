import Bytes
import Crypto
import Domain
import Relay
import Storage
import World

/// Stores factors of a user as they are after enrolment.
extension RelayRig {
    /// The secret of RFC 4226, appendix D, whose codes are published.
    public static let secret = Array("12345678901234567890".utf8)
    public static let masterKey = Secret(Array(repeating: 7, count: 32))

    public static func rowAuthenticator() throws -> RowAuthenticator {
        try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: masterKey)])
    }

    public static func sealer() throws -> Sealer { try Sealer(keys: [Sealer.Key(id: "1", key: masterKey)]) }

    /// Adds a factor, active or waiting for its first code.
    @discardableResult public func addFactor(
        _ kind: Factor, of user: UserID, at website: Website, address: String? = nil,
        secret: [UInt8] = RelayRig.secret, state: FactorState = .active, counter: Int64 = 0,
        algorithm: OTPAlgorithm = .sha1, digits: Int = 6, period: Int? = nil
    ) throws -> CodeFactor {
        let id: FactorID = relay.operations.draw()
        let associated = FactorSeal.associated(website: website.id, user: user, kind: kind, row: id)
        let sealed = kind == .recovery ? nil : try Self.sealer().seal(secret, associated: associated)
        let factor = CodeFactor(
            id: id, kind: kind, state: state, secret: sealed, algorithm: algorithm, digits: digits, period: period,
            counter: counter, address: address, failures: 0, failedAt: nil, createdAt: time.now(),
            confirmedAt: state == .active ? time.now() : nil)
        let row = Self.insertFactor(
            factor: .blob(id.bytes), user: .blob(user.bytes), kind: .text(kind.rawValue), state: .text(state.rawValue),
            secret: .blob(sealed), algorithm: .text(algorithm.rawValue), digits: .integer(Int64(digits)),
            period: .integer(period.map { Int64($0) }), counter: .integer(counter), address: .text(address),
            createdAt: .timestamp(factor.createdAt), confirmedAt: .timestamp(factor.confirmedAt),
            operation: .blob(id.bytes))
        _ = try store.runBlocking(Script("test", rows: SignedRows.everythingAdopted, writes: [row]))
        return factor
    }

    private static let insertFactor = Statement(
        """
        INSERT INTO factor (id, user_id, kind, state, secret, sealed_by, algorithm, digits, period, counter, address,
        failures, created_at, confirmed_at, operation)
        VALUES (:factor, :user, :kind, :state, :secret, '1', :algorithm, :digits, :period, :counter, :address, 0,
        :createdAt, :confirmedAt, :operation)
        """)
}
