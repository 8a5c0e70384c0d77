import Bytes

/// The secret and the parameters of one token (OTP), and its user, as a file of its maker states
/// them.
public struct Seed: Sendable {
    public enum Kind: Sendable, Equatable {
        /// A time-based code (TOTP), with the length of a time step in seconds.
        case totp(period: Int)
        /// A counter-based code (HOTP), with the counter of the next code that the token shows.
        case hotp(counter: Int64)
    }

    public enum Hash: String, Sendable, CaseIterable {
        case sha1, sha256, sha512
    }

    public let secret: Secret
    public let kind: Kind
    public let hash: Hash
    public let digits: Int
    /// The name of the user; nil if the file does not contain it.
    public let username: String?
    /// The serial number that is printed on the token.
    public let serial: String?
    /// The line in the file.
    public let line: Int

    public init(
        secret: Secret, kind: Kind, hash: Hash = .sha1, digits: Int = 6, username: String? = nil,
        serial: String? = nil, line: Int
    ) {
        self.secret = secret
        self.kind = kind
        self.hash = hash
        self.digits = digits
        self.username = username
        self.serial = serial
        self.line = line
    }
}

/// The contents of a file that was read to its end without a fault.
public struct SeedFile: Sendable {
    public let seeds: [Seed]
    /// Notes for the operator that are not faults.
    public let remarks: [String]
}

/// A fault in a file, with its line. It never contains a secret.
public struct SeedFault: Error, Sendable, Equatable {
    public let line: Int
    public let message: String

    public init(line: Int, _ message: String) {
        self.line = line
        self.message = message
    }
}

/// The reasons why a file is refused. If anything in it is wrong, nothing of it is used.
public struct SeedFaults: Error, Sendable, Equatable {
    /// The missing key or password of an encrypted file, with its name in the file.
    public enum Need: Sendable, Equatable {
        case key(String?)
        case password(String?)
    }

    /// The faults, at most the first `SeedCollector.mostFaults`.
    public let faults: [SeedFault]
    /// The number of all faults.
    public let count: Int
    public let need: Need?

    init(_ faults: [SeedFault], count: Int? = nil, need: Need? = nil) {
        self.faults = faults
        self.count = count ?? faults.count
        self.need = need
    }
}

/// Collects seeds and faults while a file is read.
struct SeedCollector {
    static let mostFaults = 20

    private(set) var seeds: [Seed] = []
    private(set) var remarks: [String] = []
    private var faults: [SeedFault] = []
    private var count = 0

    mutating func add(_ seed: Seed) { if count == 0 { seeds.append(seed) } }

    mutating func remark(_ text: String) { if !remarks.contains(text) { remarks.append(text) } }

    mutating func add(_ fault: SeedFault) {
        count += 1
        seeds = []
        if faults.count < Self.mostFaults { faults.append(fault) }
    }

    func file(empty: String) throws(SeedFaults) -> SeedFile {
        guard count == 0 else { throw SeedFaults(faults, count: count) }
        guard !seeds.isEmpty else { throw SeedFaults([SeedFault(line: 1, empty)]) }
        return SeedFile(seeds: seeds, remarks: remarks)
    }
}

/// The bounds for the parameters of every token.
enum SeedBounds {
    static let digits = 6...8
    static let period = 1...3600
    static let secretBytes = 1...128
    /// No token reaches this count; the API accepts no larger counter either.
    static let counter: ClosedRange<Int64> = 0...(1 << 48)
}
