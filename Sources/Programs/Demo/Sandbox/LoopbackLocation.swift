/// A MaxMind database (format 2.0) with a place for 127.0.0.0/8.
///
/// All visitors of the demo come from this network, and no public database has a place for it. With
/// this database the phone shows a place, as it does in production, and a true one. Tested in
/// `LoopbackLocationTests.swift`.
enum LoopbackLocation {
    static let name = "This machine"

    /// Returns the bytes of the database.
    ///
    /// - Parameter time: the build time, in seconds since 1970.
    static func database(at time: Int64) -> [UInt8] {
        tree + [UInt8](repeating: 0, count: 16) + map(("city", map(("names", map(("en", text(name)))))))
            + [0xab, 0xcd, 0xef] + Array("MaxMind.com".utf8)
            + map(
                ("node_count", number(32, 8)), ("record_size", number(16, 24)), ("ip_version", number(16, 4)),
                ("database_type", text("Twoefay-Demo-City")), ("languages", [1, 4] + text("en")),
                ("binary_format_major_version", number(16, 2)), ("binary_format_minor_version", number(16, 0)),
                ("build_epoch", number(64, UInt64(max(0, time)))), ("description", map(("en", text(name)))))
    }

    /// The search tree, with a node for each bit of 127. One of its two 24-bit records leads to the
    /// next node, and at last to the data behind the eight nodes and sixteen zero bytes. The other
    /// means "not found".
    private static var tree: [UInt8] {
        (0..<8).flatMap { (bit: UInt8) -> [UInt8] in
            let on: UInt8 = bit < 7 ? bit + 1 : 8 + 16
            return bit == 0 ? [0, 0, on, 0, 0, 8] : [0, 0, 8, 0, 0, on]
        }
    }

    // MARK: Values: their type in the upper three bits of a byte, their size in the lower five

    /// Encodes a text of less than 29 bytes.
    private static func text(_ text: String) -> [UInt8] { [2 << 5 | UInt8(text.utf8.count)] + text.utf8 }

    /// Encodes a number without its leading zeros. Types above 7 need an extra byte.
    private static func number(_ bits: Int, _ value: UInt64) -> [UInt8] {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }.drop { $0 == 0 }
        let size = UInt8(bytes.count)
        return (bits == 16 ? [5 << 5 | size] : bits == 32 ? [6 << 5 | size] : [size, 9 - 7]) + bytes
    }

    private static func map(_ members: (key: String, value: [UInt8])...) -> [UInt8] {
        [7 << 5 | UInt8(members.count)] + members.flatMap { text($0.key) + $0.value }
    }
}
