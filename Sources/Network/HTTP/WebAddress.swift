import Glibc

/// The address of a web server: `https://host[:port]`, without a path.
public struct WebAddress: Sendable, Hashable {
    public let secure: Bool
    public let host: String
    /// The port as written; nil for the default port.
    public let port: UInt16?

    public init(secure: Bool, host: String, port: UInt16?) {
        self.secure = secure
        self.host = host
        self.port = port
    }

    /// Parses `https://HOST` or `https://HOST:PORT`. Returns nil for anything else.
    public init?(_ text: String) {
        guard text.hasPrefix("https://"), let (host, port) = Self.split(String(text.dropFirst(8))), port != 0 else {
            return nil
        }
        self.init(secure: true, host: host, port: port)
    }

    public var text: String { "\(secure ? "https" : "http")://\(authority)" }

    /// Host and port in the form that a request contains.
    public var authority: String { "\(host.contains(":") ? "[\(host)]" : host)\(port.map { ":\($0)" } ?? "")" }

    /// The address as browsers write it: in lower case, and without the default port.
    public var origin: String {
        WebAddress(secure: secure, host: host.lowercased(), port: port == (secure ? 443 : 80) ? nil : port).text
    }

    /// Whether a request for this address may name it so in `Host`. The default port may be there or
    /// not, and letters may be of either case.
    public func isNamed(_ text: String) -> Bool {
        guard let (host, port) = Self.split(text) else { return false }
        let usual: UInt16 = secure ? 443 : 80
        let isSame = host == self.host || host.lowercased() == self.host.lowercased()
        return isSame && port ?? usual == self.port ?? usual
    }

    /// Splits a text into the host, without brackets, and the port, if there is one. Returns nil if
    /// the host is neither a name nor an address, or if the port has a leading zero.
    public static func split(_ text: String) -> (host: String, port: UInt16?)? {
        var text = text
        return text.withUTF8 { split($0) }
    }

    /// Reads bytes, because each request over HTTP/1.1 is checked, and characters cost ten times as
    /// much.
    private static func split(_ bytes: UnsafeBufferPointer<UInt8>) -> (host: String, port: UInt16?)? {
        let colon = UInt8(ascii: ":")
        var host = bytes[...]
        var rest = bytes[bytes.endIndex...]
        if bytes.first == UInt8(ascii: "[") {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            (host, rest) = (bytes[1..<end], bytes[(end + 1)...])
            var address = in6_addr()
            guard inet_pton(AF_INET6, String(decoding: host, as: UTF8.self), &address) == 1 else { return nil }
        } else {
            if let end = bytes.firstIndex(of: colon) { (host, rest) = (bytes[..<end], bytes[end...]) }
            guard !host.isEmpty, host.count <= 253, host.allSatisfy(isOfName) else { return nil }
        }
        let name = String(decoding: host, as: UTF8.self)
        if rest.isEmpty { return (name, nil) }
        let digits = rest.dropFirst()
        guard rest.first == colon, 1...5 ~= digits.count, digits.allSatisfy(isDigit),
            digits.count == 1 || digits.first != UInt8(ascii: "0")
        else { return nil }
        let port = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return UInt16(exactly: port).map { (name, $0) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }

    private static func isOfName(_ byte: UInt8) -> Bool {
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || isDigit(byte) || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".")
    }
}
