import Crypto

/// A list of properties of a key. A key description has two: the first is enforced by Android's
/// software, the second by the secure hardware.
///
/// Tags that this program does not use are skipped, whatever their values are: phones differ in
/// them. The order of the tags is not checked, because some devices do not follow it, but none may
/// occur twice.
public struct AuthorizationList: Sendable, Equatable {
    public private(set) var purposes: [Int64] = []
    public private(set) var algorithm: Int64?
    public private(set) var keySize: Int64?
    public private(set) var curve: Int64?
    public private(set) var needsNoAuthentication = false
    public private(set) var userAuthenticationType: Int64?
    /// The seconds for which the key can be used after an authentication; nil if each use needs
    /// one.
    public private(set) var authenticationTimeout: Int64?
    /// Whether every app of the device can use the key.
    public private(set) var isForAllApps = false
    public private(set) var origin: Int64?
    public private(set) var rootOfTrust: RootOfTrust?
    public private(set) var osVersion: Int64?
    public private(set) var osPatchLevel: Int64?
    public private(set) var application: AttestedApplication?

    private static let maxTags = 64

    init(_ reader: DERReader) throws(DERError) {
        var reader = reader
        var seen: Set<UInt32> = []
        while !reader.isAtEnd {
            var (tag, value) = try reader.openExplicit()
            guard seen.count < Self.maxTags, seen.insert(tag).inserted else { throw .content }
            if try read(tag, &value) { try value.finish() }
        }
    }

    /// Returns false for a tag that is skipped.
    private mutating func read(_ tag: UInt32, _ value: inout DERReader) throws(DERError) -> Bool {
        switch tag {
        case 1: purposes = try Self.integers(&value)
        case 2: algorithm = try value.integer()
        case 3: keySize = try value.integer()
        case 10: curve = try value.integer()
        case 503:
            try value.null()
            needsNoAuthentication = true
        case 504: userAuthenticationType = try value.integer()
        case 505: authenticationTimeout = try value.integer()
        case 600:
            try value.null()
            isForAllApps = true
        case 702: origin = try value.integer()
        case 704: rootOfTrust = try RootOfTrust(&value)
        case 705: osVersion = try value.integer()
        case 706: osPatchLevel = try value.integer()
        case 709: application = try AttestedApplication(try value.octets())
        default: return false
        }
        return true
    }

    private static func integers(_ value: inout DERReader) throws(DERError) -> [Int64] {
        var set = try value.open(.set)
        var numbers: [Int64] = []
        while !set.isAtEnd {
            guard numbers.count < 16 else { throw .content }
            numbers.append(try set.integer())
        }
        return numbers
    }
}

/// The state in which the device started.
public struct RootOfTrust: Sendable, Equatable {
    /// Whether the boot loader is locked.
    public let isLocked: Bool
    public let state: AttestedDevice.BootState

    init(_ reader: inout DERReader) throws(DERError) {
        var fields = try reader.open(.sequence)
        // The key that verified the boot. It and the fields after the state are not used.
        _ = try fields.next()
        isLocked = try fields.boolean()
        switch try fields.enumerated() {
        case 0: state = .verified
        case 1: state = .selfSigned
        case 2: state = .unverified
        case 3: state = .failed
        default: throw .content
        }
    }
}

/// The packages that may use the key, and the digests of the certificates that signed them. The
/// operating system states this, so it is worth as much as the verified boot.
public struct AttestedApplication: Sendable, Equatable {
    public struct Package: Sendable, Equatable {
        public let name: String
        public let version: Int64

        public init(name: String, version: Int64) {
            self.name = name
            self.version = version
        }
    }

    /// Several if packages share a user id.
    public let packages: [Package]
    /// SHA-256 of the certificates.
    public let signatureDigests: [[UInt8]]

    private static let maxEntries = 32

    init(_ bytes: [UInt8]) throws(DERError) {
        var reader = DERReader(bytes)
        var fields = try reader.open(.sequence)
        try reader.finish()
        var set = try fields.open(.set)
        var packages: [Package] = []
        while !set.isAtEnd {
            guard packages.count < Self.maxEntries else { throw .content }
            var package = try set.open(.sequence)
            guard let name = String(validating: try package.octets(), as: UTF8.self) else { throw .content }
            packages.append(Package(name: name, version: try package.integer()))
            try package.finish()
        }
        var digests = try fields.open(.set)
        try fields.finish()
        var signatureDigests: [[UInt8]] = []
        while !digests.isAtEnd {
            guard signatureDigests.count < Self.maxEntries else { throw .content }
            signatureDigests.append(try digests.octets())
        }
        self.packages = packages
        self.signatureDigests = signatureDigests
    }
}
