import EventLoop

/// The header by which a TCP balancer names the caller of a connection. Version 2 of the PROXY
/// protocol (HAProxy's doc/proxy-protocol.txt, section 2.2). It is parsed from bytes to a value,
/// without a socket.
enum ProxyHeader: Sendable {
    /// A connection of the balancer itself, for example a health check.
    case local
    case relayed(from: SocketAddress)

    /// The reason why the bytes are not an accepted header.
    enum Fault: String, Error, Equatable {
        case signature = "it does not begin with a PROXY header of version 2"
        case command = "its PROXY header has a command that does not exist"
        /// The specification lets the receiver choose for other families. If they counted as the
        /// proxy's own connections, all of them would share one source.
        case family = "its PROXY header has no TCP address"
        case short = "its PROXY header has no room for the addresses"
        case long = "its PROXY header is too long"
        case cut = "it ended within the PROXY header"
        case late = "the PROXY header did not come in time"
    }

    enum Reading: Sendable {
        /// The header needs at least `missing` more bytes. All of them belong to the header.
        case incomplete(missing: Int)
        case whole(ProxyHeader)
    }

    /// 0D 0A 0D 0A 00 0D 0A "QUIT" 0A. Neither TLS nor HTTP begins with these bytes.
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]
    /// The bytes before the addresses: signature, version and command, family and protocol, length.
    private static let prefix = 16
    /// The limit on the bytes after the prefix. The specification says that a header "is always
    /// smaller than an MSS"; 4096 is more than twice that. All but the addresses is skipped, so a
    /// larger limit would only cost memory for every connection of a balancer.
    static let longest = 4096

    /// The header of a connection that its sender makes for itself: version 2, LOCAL, no addresses.
    static let ownConnection: [UInt8] = signature + [0x20, 0, 0, 0]

    /// Parses the bytes received so far. Each byte is checked as soon as it is there, so a peer
    /// with another protocol is refused without waiting.
    static func read(_ bytes: [UInt8]) throws(Fault) -> Reading {
        guard zip(bytes, signature).allSatisfy({ $0 == $1 }) else { throw .signature }
        guard bytes.count > 12 else { return .incomplete(missing: prefix - bytes.count) }
        guard bytes[12] >> 4 == 2 else { throw .signature }
        let isRelayed: Bool
        switch bytes[12] & 15 {
        case 0: isRelayed = false
        case 1: isRelayed = true
        default: throw .command
        }
        guard bytes.count >= prefix else { return .incomplete(missing: prefix - bytes.count) }
        // The family and addresses of a balancer's own connection must be ignored.
        let width = isRelayed ? try addressWidth(bytes[13]) : 0
        let length = Int(bytes[14]) << 8 | Int(bytes[15])
        guard length >= (width == 0 ? 0 : 2 * width + 4) else { throw .short }
        guard length <= longest else { throw .long }
        let missing = prefix + length - bytes.count
        guard missing <= 0 else { return .incomplete(missing: missing) }
        guard isRelayed else { return .whole(.local) }
        let port = UInt16(bytes[prefix + 2 * width]) << 8 | UInt16(bytes[prefix + 2 * width + 1])
        let source = SocketAddress(bytes: Array(bytes[prefix..<prefix + width]), port: port)
        guard let source else { throw .family }
        return .whole(.relayed(from: source.unmapped))
    }

    /// The length of an address in bytes.
    private static func addressWidth(_ family: UInt8) throws(Fault) -> Int {
        switch family {
        case 0x11: 4
        case 0x21: 16
        default: throw .family
        }
    }
}
