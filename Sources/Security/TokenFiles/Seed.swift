import Bytes

/// What the codes of one token are made of, and whose token it is, as a file of its maker says.
public struct Seed: Sendable {
    public enum Kind: Sendable, Equatable {
        /// Codes of a time; a step has so many seconds.
        case totp(period: Int)
        /// Codes of a counter: the one that the token shows next.
        case hotp(counter: Int64)
    }

    public enum Hash: String, Sendable, CaseIterable {
        case sha1, sha256, sha512
    }

    public let secret: Secret
    public let kind: Kind
    public let hash: Hash
    public let digits: Int
    /// Who has it, if the file knows.
    public let username: String?
    /// What is printed on the token.
    public let serial: String?
    /// Where it stands in the file.
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

/// A file that was read to its end without a fault.
public struct SeedFile: Sendable {
    public let seeds: [Seed]
    /// What whoever imports it should know, though it is no fault.
    public let remarks: [String]
}

/// What is wrong in a file, and where. Never holds a secret.
public struct SeedFault: Error, Sendable, Equatable {
    public let line: Int
    public let message: String

    public init(line: Int, _ message: String) {
        self.line = line
        self.message = message
    }
}

/// Why a file is not taken: nothing of it is, if anything in it is wrong.
public struct SeedFaults: Error, Sendable, Equatable {
    /// What would open a file that is encrypted, and was not given; with the name that the file has for it.
    public enum Need: Sendable, Equatable {
        case key(String?)
        case password(String?)
    }

    /// The first ones of a file that has many.
    public let faults: [SeedFault]
    /// How many there are in all.
    public let count: Int
    public let need: Need?

    init(_ faults: [SeedFault], count: Int? = nil, need: Need? = nil) {
        self.faults = faults
        self.count = count ?? faults.count
        self.need = need
    }
}

/// Seeds and faults as they are found, one after the other.
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

/// The bounds that every token keeps to.
enum SeedBounds {
    static let digits = 6...8
    static let period = 1...3600
    static let secretBytes = 1...128
    /// No button is pressed so often; the routes take no more either.
    static let counter: ClosedRange<Int64> = 0...(1 << 48)
}
