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

    /// Whether a request for this address may name it so in `Host`. The default port may be there or
    /// not, and letters may be of either case.
    public func isNamed(_ text: String) -> Bool {
        guard let (host, port) = Self.split(text) else { return false }
        let usual: UInt16 = secure ? 443 : 80
        return host.lowercased() == self.host.lowercased() && port ?? usual == self.port ?? usual
    }

    /// Splits a text into the host, without brackets, and the port, if there is one. Returns nil if
    /// the host is neither a name nor an address, or if the port has a leading zero.
    public static func split(_ text: String) -> (host: String, port: UInt16?)? {
        var host = Substring(text)
        var rest = Substring()
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            rest = text[text.index(after: end)...]
            var address = in6_addr()
            guard inet_pton(AF_INET6, String(host), &address) == 1 else { return nil }
        } else {
            if let colon = text.firstIndex(of: ":") { (host, rest) = (text[..<colon], text[colon...]) }
            let allowed = { (byte: UInt8) in
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
                    || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
            }
            guard !host.isEmpty, host.utf8.count <= 253, host.utf8.allSatisfy(allowed) else { return nil }
        }
        if rest.isEmpty { return (String(host), nil) }
        let digits = rest.dropFirst()
        guard rest.first == ":", digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
            digits.count == 1 || digits.first != "0", let port = UInt16(digits)
        else { return nil }
        return (String(host), port)
    }
}
