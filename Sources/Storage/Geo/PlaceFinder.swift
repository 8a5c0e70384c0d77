import CLinux
import CMaxMind
import Domain
import Glibc
import World

/// Finds the place of an IP address in a MaxMind database of cities or countries.
///
/// `@unchecked Sendable`: Guard: from the end of `init` to `deinit` the database is only read, by
/// this class and by libmaxminddb, which keeps no state between lookups.
public final class PlaceFinder: @unchecked Sendable {
    /// The reason why a file cannot be used.
    public struct Fault: Error, Sendable, Equatable {
        public let path: String
        public let reason: String

        public var text: String { "\(path): \(reason)" }
    }

    /// The type that the database states, such as `GeoLite2-City`.
    public let kind: String
    /// The time at which the database was built; nil if the database has no valid time.
    public let madeAt: Timestamp?
    private let database: UnsafeMutablePointer<MMDB_s>

    public init(path: String) throws(Fault) {
        let copy = try MemoryFile(copying: path)
        let database = UnsafeMutablePointer<MMDB_s>.allocate(capacity: 1)
        database.initialize(to: MMDB_s())
        self.database = database
        let status = withExtendedLifetime(copy) { MMDB_open(copy.path, UInt32(MMDB_MODE_MMAP), database) }
        guard status == MMDB_SUCCESS else {
            database.deallocate()
            throw Fault(path: path, reason: Self.reason(status))
        }
        let metadata = database.pointee.metadata
        let kind = metadata.database_type.flatMap { String(validatingCString: $0) } ?? ""
        self.kind = FieldRule.line(kind, limit: 64) == nil ? kind : "of an unprintable kind"
        // The build time may be at most in the year 9999; a later one means that the file is
        // broken.
        madeAt = metadata.build_epoch < 253_402_300_800 ? Timestamp(seconds: Int64(metadata.build_epoch)) : nil
        try check(path)
    }

    deinit {
        MMDB_close(database)
        database.deallocate()
    }

    /// Returns city and country, or subdivision and country, or the country alone. It returns nil
    /// if the database has none of them or the text is not an address.
    public func place(of ip: String) -> String? {
        guard var address = InternetAddress(ip) else { return nil }
        var status = MMDB_SUCCESS
        var found = address.withPointer { MMDB_lookup_sockaddr(database, $0, &status) }
        guard status == MMDB_SUCCESS, found.found_entry else { return nil }
        do throws(Corrupt) {
            return try place(in: &found.entry)
        } catch {
            return nil
        }
    }

    /// Returns the area of an address: the circle in which the database places it.
    func area(of ip: String) -> (latitude: Double, longitude: Double, radius: Double)? {
        guard var address = InternetAddress(ip) else { return nil }
        var status = MMDB_SUCCESS
        var found = address.withPointer { MMDB_lookup_sockaddr(database, $0, &status) }
        guard status == MMDB_SUCCESS, found.found_entry,
            let latitude = Self.number("latitude", in: &found.entry), (-90...90).contains(latitude),
            let longitude = Self.number("longitude", in: &found.entry), (-180...180).contains(longitude)
        else { return nil }
        let radius = Self.number("accuracy_radius", in: &found.entry) ?? Self.usualRadius
        guard Self.radii.contains(radius) else { return nil }
        return (latitude, longitude, radius)
    }

    /// Returns a number of the record's location; nil if the record has none or is corrupt.
    private static func number(_ what: String, in record: inout MMDB_entry_s) -> Double? {
        var value = MMDB_entry_data_s()
        guard cmaxmind_location(&record, &value, what) == MMDB_SUCCESS, value.has_data else { return nil }
        switch value.type {
        case UInt32(MMDB_DATA_TYPE_DOUBLE): return value.double_value.isFinite ? value.double_value : nil
        case UInt32(MMDB_DATA_TYPE_UINT16): return Double(value.uint16)
        default: return nil
        }
    }

    // MARK: Records

    private struct Corrupt: Error {
        let status: Int32
    }

    private func place(in record: inout MMDB_entry_s) throws(Corrupt) -> String? {
        let country = try name("country", in: &record)
        var nearer = try name("city", in: &record)
        if nearer == nil { nearer = try name("subdivisions", several: true, in: &record) }
        guard let country else { return nearer }
        guard let nearer, nearer != country else { return country }
        return Self.shown("\(nearer), \(country)") ?? country
    }

    private func name(
        _ what: String, several: Bool = false, in record: inout MMDB_entry_s
    ) throws(Corrupt) -> String? {
        var name = MMDB_entry_data_s()
        let status = cmaxmind_name(&record, &name, what, several)
        switch status {
        case MMDB_SUCCESS: break
        case MMDB_LOOKUP_PATH_DOES_NOT_MATCH_DATA_ERROR: return nil
        default: throw Corrupt(status: status)
        }
        guard name.has_data, name.type == UInt32(MMDB_DATA_TYPE_UTF8_STRING), let start = name.utf8_string else {
            return nil
        }
        // A scalar has at most four bytes, so a longer name would be too long to show.
        guard name.data_size <= 4 * Self.longest else { return nil }
        let bytes = UnsafeRawBufferPointer(start: start, count: Int(name.data_size))
        return String(validating: bytes, as: UTF8.self).flatMap(Self.shown)
    }

    /// The maximum length of a name, in characters.
    private static let longest = 128

    /// Returns the text if it satisfies the rule for all text that is shown to users, else nil.
    private static func shown(_ text: String) -> String? { FieldRule.line(text, limit: longest) == nil ? text : nil }

    // MARK: Check after opening

    /// Checks that the database contains a place. A database of networks or of anonymous proxies
    /// can be opened as well.
    private func check(_ path: String) throws(Fault) {
        var search = Search(left: 100_000)
        do throws(Corrupt) {
            if try holdsPlace(node: 0, depth: 0, &search) { return }
        } catch {
            throw Fault(path: path, reason: Self.reason(error.status))
        }
        throw Fault(
            path: path, reason: "has no places (it is \(kind)); use a database of cities or countries"
        )
    }

    private struct Search {
        /// The number of nodes that may still be read. Real databases have a place among the first
        /// few hundred.
        var left: Int
    }

    private func holdsPlace(node: UInt32, depth: Int, _ search: inout Search) throws(Corrupt) -> Bool {
        // No address has more than 128 bits, so a deeper tree has a cycle.
        guard depth < 128, search.left > 0 else { return false }
        search.left -= 1
        var pair = MMDB_search_node_s()
        let status = MMDB_read_node(database, node, &pair)
        guard status == MMDB_SUCCESS else { throw Corrupt(status: status) }
        let records = [
            (pair.left_record_type, pair.left_record, pair.left_record_entry),
            (pair.right_record_type, pair.right_record, pair.right_record_entry),
        ]
        for (type, next, entry) in records {
            switch Int32(type) {
            case MMDB_RECORD_TYPE_SEARCH_NODE:
                guard let next = UInt32(exactly: next) else { throw Corrupt(status: MMDB_CORRUPT_SEARCH_TREE_ERROR) }
                if try holdsPlace(node: next, depth: depth + 1, &search) { return true }
            case MMDB_RECORD_TYPE_EMPTY: continue
            case MMDB_RECORD_TYPE_DATA:
                var entry = entry
                if try place(in: &entry) != nil { return true }
            default: throw Corrupt(status: MMDB_CORRUPT_SEARCH_TREE_ERROR)
            }
        }
        return false
    }

    /// The library's message, after the relay's own explanation.
    private static func reason(_ status: Int32) -> String {
        switch status {
        case MMDB_UNKNOWN_DATABASE_FORMAT_ERROR, MMDB_INVALID_METADATA_ERROR:
            "is not a MaxMind database, or is incomplete (\(String(cString: MMDB_strerror(status))))"
        default: "is a corrupt MaxMind database (\(String(cString: MMDB_strerror(status))))"
        }
    }
}
