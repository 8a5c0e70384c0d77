import Glibc

/// A range of IPv4 or IPv6 addresses with a common prefix: `10.0.0.0/8`, `fd00::/8`, or a single
/// address.
public struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    private let bytes: [UInt8]
    /// The length of the prefix in bits.
    public let bits: Int

    /// Parses a range. Returns nil for invalid text, and if bits are set behind the prefix: then
    /// either the address or the length is a mistake.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first, let bytes = Self.bytes(of: String(address)) else { return nil }
        var bits = bytes.count * 8
        if parts.count == 2 {
            guard let given = Int(parts[1]), String(given) == parts[1], (0...bits).contains(given) else { return nil }
            bits = given
        }
        self.init(bytes: bytes, bits: bits)
    }

    private init?(bytes: [UInt8], bits: Int) {
        let left = bytes.enumerated().contains { at, byte in byte & ~Self.mask(at, bits) != 0 }
        guard !left else { return nil }
        self.bytes = bytes
        self.bits = bits
    }

    public func contains(_ address: SocketAddress) -> Bool { contains(address.bytes) }

    package func contains(_ address: [UInt8]) -> Bool {
        address.count == bytes.count
            && zip(address, bytes).enumerated().allSatisfy { at, pair in pair.0 & Self.mask(at, bits) == pair.1 }
    }

    /// The bits of the byte at `at` that belong to the first `bits` of all.
    private static func mask(_ at: Int, _ bits: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: 0xff00 >> min(max(bits - at * 8, 0), 8))
    }

    /// Parses an address to 4 or 16 bytes. Returns nil if the text is not an address.
    package static func bytes(of text: String) -> [UInt8]? {
        // C would stop reading at a zero byte.
        guard !text.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return withUnsafeBytes(of: &four) { Array($0) } }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        return withUnsafeBytes(of: &six) { Array($0) }
    }

    public var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count))
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self) + "/\(bits)"
    }
}
