import EventLoop
import Glibc

/// The rules for the addresses that may be connected to if others have chosen the URL.
///
/// Only addresses that lead into the internet are allowed. It refuses this machine, private
/// networks and addresses reserved for other uses (the registries of RFC 6890). It also refuses
/// them if they are embedded in an IPv6 address. This machine's public addresses are refused too,
/// because programs that listen there may trust a connection from this machine. Neighbours with
/// public addresses cannot be recognized. Ranges that the operator names are allowed. Tests:
/// `AddressTests`.
public struct AddressGuard: Sendable, Equatable {
    private enum Rule: Equatable {
        /// `own` nil: the addresses that the system reports.
        case outside(allowing: [AddressRange], own: [[UInt8]]?)
        case anything
    }

    private let rule: Rule

    public init(allowing ranges: [AddressRange] = []) { rule = .outside(allowing: ranges, own: nil) }

    init(allowing ranges: [AddressRange] = [], own: [[UInt8]]) { rule = .outside(allowing: ranges, own: own) }

    private init(_ rule: Rule) { self.rule = rule }

    /// Allows every address, for URLs that the operator has written.
    public static let none = AddressGuard(.anything)

    /// The reason why that address may not be connected to; nil if it may. Also nil for a name,
    /// because a name is checked by the addresses that it leads to.
    public func refusal(of host: String) -> String? { AddressRange.bytes(of: host).flatMap { refusal(of: $0) } }

    /// The reason for 4 or 16 bytes. Any other length is refused.
    func refusal(of address: [UInt8]) -> String? {
        guard case .outside(let allowed, let own) = rule else { return nil }
        if address.count == 16, address.starts(with: Self.mapped) {
            // The system connects to the embedded IPv4 address.
            return refusal(of: Array(address.suffix(4)))
        }
        if allowed.contains(where: { $0.contains(address) }) { return nil }
        if let what = setAside(address) { return what }
        return own?.contains(address) ?? OwnAddresses.contains(address) ? "this machine's own" : nil
    }

    private func setAside(_ address: [UInt8]) -> String? {
        switch address.count {
        case 4: return Self.find(address, Self.four)
        case 16:
            if let what = Self.find(address, Self.six) { return what }
            // Translators and tunnels forward these to the embedded IPv4 address.
            if Self.translated.contains(address) { return refusal(of: Array(address.suffix(4))) }
            if Self.sixToFour.contains(address) { return refusal(of: Array(address[2..<6])) }
            return Self.global.contains(address) ? nil : "not public"
        default: return "not public"
        }
    }

    /// The reason for a `sockaddr` that a socket is about to connect to.
    func refusal(ofSocketAddress bytes: UnsafeRawBufferPointer) -> String? {
        refusal(of: Self.address(ofSocketAddress: bytes))
    }

    /// Whether the operator's ranges contain a `sockaddr` that a socket is about to connect to.
    func names(socketAddress bytes: UnsafeRawBufferPointer) -> Bool { names(Self.address(ofSocketAddress: bytes)) }

    /// Whether they contain the host of a URL; nil for a name.
    public func names(host: String) -> Bool? { AddressRange.bytes(of: host).map { names($0) } }

    /// Whether they contain an address of 4 or 16 bytes.
    func names(_ address: [UInt8]) -> Bool {
        guard case .outside(let allowed, _) = rule else { return false }
        if address.count == 16, address.starts(with: Self.mapped) { return names(Array(address.suffix(4))) }
        return allowed.contains { $0.contains(address) }
    }

    /// Whether the address is a loopback address, so that the traffic stays on this machine.
    static func isLoopback(socketAddress bytes: UnsafeRawBufferPointer) -> Bool {
        let address = address(ofSocketAddress: bytes)
        return loopback.contains { $0.contains(address) }
    }

    private static let loopback = [range("127.0.0.0/8"), range("::1/128")]

    /// The 4 or 16 bytes of the address; empty for another family.
    private static func address(ofSocketAddress bytes: UnsafeRawBufferPointer) -> [UInt8] {
        guard bytes.count >= MemoryLayout<sa_family_t>.size else { return [] }
        switch Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET where bytes.count >= MemoryLayout<sockaddr_in>.size:
            let four = bytes.loadUnaligned(as: sockaddr_in.self).sin_addr
            return withUnsafeBytes(of: four) { Array($0) }
        case AF_INET6 where bytes.count >= MemoryLayout<sockaddr_in6>.size:
            let six = bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            return withUnsafeBytes(of: six) { Array($0) }
        default: return []
        }
    }

    private static func find(_ address: [UInt8], _ table: [(range: AddressRange, what: String)]) -> String? {
        table.first { $0.range.contains(address) }?.what
    }

    private static let mapped: [UInt8] = Array(repeating: 0, count: 10) + [0xff, 0xff]
    private static let translated = range("64:ff9b::/96")
    private static let sixToFour = range("2002::/16")
    private static let global = range("2000::/3")

    private static func range(_ text: String) -> AddressRange {
        guard let range = AddressRange(text) else { preconditionFailure("\(text) is no range") }
        return range
    }

    private static func table(_ rows: [(String, String)]) -> [(range: AddressRange, what: String)] {
        rows.map { (range($0), $1) }
    }

    private static let four = table([
        ("0.0.0.0/8", "unspecified"), ("10.0.0.0/8", "private"), ("100.64.0.0/10", "shared by a provider's customers"),
        ("127.0.0.0/8", "loopback"), ("169.254.0.0/16", "link-local"), ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"), ("192.0.2.0/24", "for documentation"), ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"), ("198.18.0.0/15", "for benchmarks"), ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"), ("224.0.0.0/4", "multicast"), ("240.0.0.0/4", "reserved"),
    ])

    private static let six = table([
        ("::/128", "unspecified"), ("::1/128", "loopback"), ("64:ff9b:1::/48", "private"), ("100::/64", "reserved"),
        // This range contains Teredo, ORCHID and addresses for benchmarks.
        ("2001::/23", "reserved"), ("2001:db8::/32", "for documentation"), ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"), ("fe80::/10", "link-local"), ("fec0::/10", "private"), ("ff00::/8", "multicast"),
    ])
}
