import EventLoop

/// What a proxy that passes TCP through says ahead of it: whose connection this is. Version 2 of the PROXY protocol
/// (HAProxy's doc/proxy-protocol.txt, 2.2). Bytes in, a value out: nothing here knows a socket.
enum ProxyHeader: Sendable {
    /// The proxy's own, as when it looks whether we are well.
    case local
    case relayed(from: SocketAddress)

    /// Why these bytes are no header, or none that we go by.
    enum Fault: String, Error, Equatable {
        case signature = "it does not begin with a PROXY header of version 2"
        case command = "its PROXY header has a command that does not exist"
        /// The specification leaves these to us. Taken as the proxy's own, they would all be one caller.
        case family = "its PROXY header has no TCP address"
        case short = "its PROXY header has no room for the addresses"
        case long = "its PROXY header is too long"
        case cut = "it ended within the PROXY header"
        case late = "the PROXY header did not come in time"
    }

    enum Reading: Sendable {
        /// So many bytes may be taken from the connection: none of them is from behind the header.
        case incomplete(missing: Int)
        case whole(ProxyHeader)
    }

    /// 0D 0A 0D 0A 00 0D 0A "QUIT" 0A, which neither TLS nor HTTP begins with.
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]
    /// The signature, version and command, family and protocol, the length of what follows.
    private static let prefix = 16
    /// Of what follows. A header "is always smaller than an MSS"; what exceeds one twice over is none. More would be kept
    /// for every connection that a proxy opens, and be of no use: all but the addresses is skipped.
    static let longest = 4096

    /// Looks at what there is of it. Each byte is judged as soon as it is there, so that whoever speaks something else need
    /// not be waited for.
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
        // What a connection of the proxy's own says of families and addresses is to be ignored.
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

    /// How many bytes an address has.
    private static func addressWidth(_ family: UInt8) throws(Fault) -> Int {
        switch family {
        case 0x11: 4
        case 0x21: 16
        default: throw .family
        }
    }
}
