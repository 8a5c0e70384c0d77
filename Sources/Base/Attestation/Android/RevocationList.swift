import Crypto
import JSON
import World

/// Google's list of revoked attestation certificates, which operators fetch from
/// `https://android.googleapis.com/attestation/status`.
///
/// Every serial number on the list counts, whatever its status: REVOKED, SUSPENDED, or one that is
/// not known yet. The list has no date of its own, so its age is that of the file.
public struct RevocationList: Sendable {
    /// The time when the list was fetched.
    public let fetchedAt: Timestamp
    /// Serial numbers in lower-case hexadecimal without zeros at the beginning.
    private let serials: Set<String>

    public enum Fault: Error, Sendable, Equatable, CustomStringConvertible {
        case json(JSONError)
        /// The text is JSON of another form.
        case form(String)

        public var description: String {
            switch self {
            case .json(let error): "\(error)"
            case .form(let what): what
            }
        }
    }

    public init(json: [UInt8], fetchedAt: Timestamp) throws(Fault) {
        let value: JSONValue
        do {
            value = try JSONReader.read(json, limits: JSONLimits(maxDepth: 8, maxMembers: 1_000_000))
        } catch {
            throw .json(error)
        }
        guard let entries = value.object?["entries"]?.object else { throw .form("there is no object `entries`") }
        var serials: Set<String> = []
        serials.reserveCapacity(entries.count)
        for entry in entries.members {
            guard !entry.name.isEmpty, entry.name.utf8.allSatisfy(Self.isHexadecimal) else {
                throw .form("`\(entry.name.prefix(64))` is not a serial number in hexadecimal")
            }
            guard entry.value.object?["status"]?.string != nil else {
                throw .form("the entry `\(entry.name.prefix(64))` has no `status`")
            }
            serials.insert(Self.canonical(entry.name))
        }
        self.serials = serials
        self.fetchedAt = fetchedAt
    }

    public var count: Int { serials.count }

    public func contains(_ certificate: Certificate) -> Bool { serials.contains(Self.canonical(certificate.serial)) }

    private static func canonical(_ serial: String) -> String {
        let digits = serial.lowercased().utf8.drop { $0 == UInt8(ascii: "0") }
        return digits.isEmpty ? "0" : String(decoding: digits, as: UTF8.self)
    }

    private static func isHexadecimal(_ digit: UInt8) -> Bool {
        switch digit {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
        default: false
        }
    }
}
