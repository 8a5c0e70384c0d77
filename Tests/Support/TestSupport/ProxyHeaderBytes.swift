/// Headers of the PROXY protocol, version 2: valid ones, and any bytes that a test requires.
public enum ProxyHeaderBytes {
    public static let signature: [UInt8] = [
        0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a,
    ]

    public static func prefix(_ command: UInt8, _ family: UInt8, length: Int) -> [UInt8] {
        signature + [command, family, UInt8(length >> 8), UInt8(length & 0xff)]
    }

    public static func header(_ command: UInt8, _ family: UInt8, _ rest: [UInt8]) -> [UInt8] {
        prefix(command, family, length: rest.count) + rest
    }

    /// The header of a TCP connection over IPv4 to a server at 198.51.100.1:443.
    public static func four(_ source: [UInt8], port: UInt16) -> [UInt8] {
        header(0x21, 0x11, source + [198, 51, 100, 1, UInt8(port >> 8), UInt8(port & 0xff), 0x01, 0xbb])
    }

    /// The header of a connection that the proxy makes for itself.
    public static let local = prefix(0x20, 0x00, length: 0)
}
