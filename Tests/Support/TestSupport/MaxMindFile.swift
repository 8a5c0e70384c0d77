import Glibc

/// A writer of MaxMind databases, after the specification of format 2.0. A file consists of a tree
/// over the bits of addresses, sixteen zero bytes, the records, and metadata after a marker.
public struct MaxMindFile {
    public indirect enum Value {
        case text(String)
        case bytes([UInt8])
        case number16(UInt16)
        case number32(UInt32)
        case number64(UInt64)
        case double(Double)
        case array([Value])
        case map([(String, Value)])
    }

    private enum Record {
        case empty
        case node(Int)
        case data(Int)
    }

    public var kind: String
    public var madeAt: UInt64 = 1_790_000_000
    private let version: Int
    private let recordBits: Int
    private var nodes: [(left: Record, right: Record)] = [(.empty, .empty)]
    private var data = Encoder()

    /// Creates an empty database.
    ///
    /// - Parameters:
    ///   - version: 4 for IPv4 only, 6 for both versions.
    ///   - recordBits: 24, 28 or 32.
    public init(kind: String = "GeoLite2-City", version: Int = 6, recordBits: Int = 28) {
        self.kind = kind
        self.version = version
        self.recordBits = recordBits
    }

    /// Adds the record of a network, such as `192.0.2.0/24`. Networks must not overlap.
    public mutating func add(_ network: String, _ value: Value) {
        let offset = data.bytes.count
        data.append(value)
        let bits = Self.bits(network, version: version)
        var node = 0
        for (depth, isRight) in bits.enumerated() {
            let isLast = depth == bits.count - 1
            if case .node(let next) = isRight ? nodes[node].right : nodes[node].left, !isLast {
                node = next
                continue
            }
            let record = isLast ? Record.data(offset) : .node(nodes.count)
            if isRight { nodes[node].right = record } else { nodes[node].left = record }
            if !isLast {
                node = nodes.count
                nodes.append((.empty, .empty))
            }
        }
    }

    public func write(to path: String) throws { try TextFile.write(bytes, to: path) }

    public var bytes: [UInt8] {
        var description = Encoder()
        description.append(
            .map([
                ("node_count", .number32(UInt32(nodes.count))), ("record_size", .number16(UInt16(recordBits))),
                ("ip_version", .number16(UInt16(version))), ("database_type", .text(kind)),
                ("languages", .array([.text("en")])), ("binary_format_major_version", .number16(2)),
                ("binary_format_minor_version", .number16(0)), ("build_epoch", .number64(madeAt)),
                ("description", .map([("en", .text("Written by a test"))])),
            ]))
        return nodes.flatMap { pair($0.left, $0.right) } + Array(repeating: 0, count: 16) + data.bytes
            + [0xab, 0xcd, 0xef] + Array("MaxMind.com".utf8) + description.bytes
    }

    private func pair(_ left: Record, _ right: Record) -> [UInt8] {
        let (left, right) = (number(left), number(right))
        switch recordBits {
        case 24: return big(left, 3) + big(right, 3)
        // The two records share the middle byte, with the four highest bits of each.
        case 28: return big(left & 0xff_ffff, 3) + [UInt8((left >> 24) << 4 | right >> 24)] + big(right & 0xff_ffff, 3)
        default: return big(left, 4) + big(right, 4)
        }
    }

    private func number(_ record: Record) -> Int {
        switch record {
        case .node(let index): index
        case .empty: nodes.count
        case .data(let offset): nodes.count + 16 + offset
        }
    }

    /// Returns the common leading bits of the network. IPv4 addresses follow ninety-six zero bits.
    private static func bits(_ network: String, version: Int) -> [Bool] {
        let parts = network.split(separator: "/")
        let isFour = !parts[0].contains(":")
        var address = [UInt8](repeating: 0, count: isFour ? 4 : 16)
        precondition(inet_pton(isFour ? AF_INET : AF_INET6, String(parts[0]), &address) == 1, "\(network)")
        let bits: [Bool] = address.flatMap { byte -> [Bool] in (0..<8).map { (byte >> (7 - $0)) & 1 == 1 } }
        let length = Int(parts[1]).map { min($0, bits.count) } ?? bits.count
        return Array(repeating: false, count: isFour && version == 6 ? 96 : 0) + bits.prefix(length)
    }
}

/// Encodes values in sequence. A repeated text is a pointer to the first one, as in published
/// databases.
private struct Encoder {
    var bytes: [UInt8] = []
    private var places: [String: Int] = [:]

    mutating func append(_ value: MaxMindFile.Value) {
        switch value {
        case .text(let text): append(text)
        case .bytes(let content):
            control(4, content.count)
            bytes += content
        case .number16(let number): self.number(5, Int(number))
        case .number32(let number): self.number(6, Int(number))
        case .number64(let number): self.number(9, Int(number))
        case .double(let number):
            control(3, 8)
            bytes += (0..<8).map { UInt8(truncatingIfNeeded: number.bitPattern >> (56 - 8 * $0)) }
        case .array(let values):
            control(11, values.count)
            for value in values { append(value) }
        case .map(let members):
            control(7, members.count)
            for (key, value) in members {
                append(key)
                append(value)
            }
        }
    }

    private mutating func append(_ text: String) {
        if let place = places[text] {
            if place < 2048 {
                bytes += [0x20 | UInt8(place >> 8), UInt8(place & 0xff)]
            } else {
                bytes += [0x38] + big(place, 4)
            }
            return
        }
        if text.utf8.count > 4 { places[text] = bytes.count }
        control(2, text.utf8.count)
        bytes += text.utf8
    }

    /// Encodes a number without its leading zeros.
    private mutating func number(_ type: UInt8, _ number: Int) {
        let digits = big(number, 8).drop { $0 == 0 }
        control(type, digits.count)
        bytes += digits
    }

    private mutating func control(_ type: UInt8, _ size: Int) {
        let (low, more): (UInt8, [UInt8]) =
            switch size {
            case ..<29: (UInt8(size), [])
            case ..<285: (29, [UInt8(size - 29)])
            case ..<65_821: (30, big(size - 285, 2))
            default: (31, big(size - 65_821, 3))
            }
        bytes += type < 8 ? [type << 5 | low] : [low, type - 7]
        bytes += more
    }
}

private func big(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * (count - 1 - $0))) }
}

extension MaxMindFile.Value {
    /// Returns a record as in databases of cities, or with only a country as in databases of
    /// countries.
    public static func place(
        city: String? = nil, subdivision: String? = nil, country: String? = nil, latitude: Double? = nil,
        longitude: Double? = nil, radius: MaxMindFile.Value? = nil
    ) -> MaxMindFile.Value {
        var members: [(String, MaxMindFile.Value)] = [("continent", .map([("code", .text("EU"))]))]
        if let city { members.append(("city", named(city))) }
        if let country { members.append(("country", named(country))) }
        if let subdivision { members.append(("subdivisions", .array([named(subdivision)]))) }
        if let latitude, let longitude {
            var location: [(String, MaxMindFile.Value)] = []
            if let radius { location.append(("accuracy_radius", radius)) }
            location += [("latitude", .double(latitude)), ("longitude", .double(longitude))]
            members.append(("location", .map(location)))
        }
        return .map(members)
    }

    /// Returns a name in several languages, English among them.
    public static func named(_ name: String) -> MaxMindFile.Value {
        .map([
            ("geoname_id", .number32(2_761_369)),
            ("names", .map([("de", .text("\(name) auf Deutsch")), ("en", .text(name)), ("fr", .text("\(name), fr"))])),
        ])
    }
}
