/// The content of the QR code or link that binds a phone.
///
/// Invariant: two parsers cannot read the same URI differently. A parameter that appears twice is
/// therefore refused.
public struct Activation: Sendable, Equatable {
    public let relay: RelayOrigin
    public let website: String
    /// The opaque id of the user.
    public let token: String
    public let code: String
    /// The SHA-256 of the key of the relay's authority.
    public let pin: [UInt8]
    /// The website's secret, which the relay never sees; nil unless the website drew the code
    /// itself.
    public let websiteKey: [UInt8]?

    public struct Malformed: Error, Sendable, Equatable {
        public let reason: String
    }

    static let start = "twoefay://enrol?"
    /// The path of the web app, whose links have the same parameters behind the `#`.
    private static let appPath = "/phone/"

    /// - Parameter uri: the URI, or a link to the web app that this app takes over.
    public init(_ uri: String) throws(Malformed) {
        let app = Self.app(of: uri)
        guard app != nil || uri.hasPrefix(Self.start) else {
            throw Malformed(reason: "it does not begin with \(Self.start), and is no link to a web app")
        }
        let parameters = try Self.parameters(
            app == nil ? uri.dropFirst(Self.start.count) : uri.drop { $0 != "#" }.dropFirst())
        func value(_ name: String) throws(Malformed) -> String {
            guard let value = parameters[name], !value.isEmpty else { throw Malformed(reason: "\(name) is missing") }
            return value
        }
        func digest(_ name: String) throws(Malformed) -> [UInt8] {
            guard let bytes = Base64URL.decode(try value(name)), bytes.count == 32 else {
                throw Malformed(reason: "\(name) is not 256 bits in base64url")
            }
            return bytes
        }
        guard let relay = RelayOrigin(try value("relay")) else {
            throw Malformed(reason: "relay must be https://HOST:PORT, without a path")
        }
        self.relay = relay
        website = try value("website")
        guard Self.isName(website) else { throw Malformed(reason: "website is no name of a website") }
        token = try value("token")
        code = try value("code")
        // Both stand in statements and requests as they are.
        guard [token, code].allSatisfy({ $0.utf8.allSatisfy { (0x21...0x7e).contains($0) } }) else {
            throw Malformed(reason: "token or code has characters that it cannot have")
        }
        pin = try digest("pin")
        websiteKey = parameters["k"] == nil ? nil : try digest("k")
        // The relay could read it there by another page.
        let ofRelay = [relay.host, parameters["at"].flatMap { RelayOrigin($0) }?.host]
        guard websiteKey == nil || app.map({ ofRelay.contains($0.host) }) != true else {
            throw Malformed(reason: "k must not be in a link to a host of the relay")
        }
    }

    /// The address of the web app that a link leads to; nil for anything else. Browsers write hosts in
    /// lower case, so other links are none.
    private static func app(of uri: String) -> RelayOrigin? {
        let place = uri.prefix { $0 != "#" }
        guard place.count < uri.count, place.hasSuffix(appPath) else { return nil }
        return RelayOrigin(String(place.dropLast(appPath.count)))
    }

    private static func isName(_ text: String) -> Bool {
        func isInner(_ byte: UInt8) -> Bool {
            (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2d || byte == 0x2e
        }
        return text.utf8.count <= 64 && text.utf8.allSatisfy(isInner) && !text.hasPrefix("-") && !text.hasPrefix(".")
    }

    /// Returns the decoded parameters. Unknown ones are ignored: a later relay may add some.
    private static func parameters(_ query: Substring) throws(Malformed) -> [String: String] {
        var found: [String: String] = [:]
        for pair in query.split(separator: "&", omittingEmptySubsequences: false) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let name = decoded(parts[0]), let value = decoded(parts[1]) else {
                throw Malformed(reason: "a parameter is not a percent-encoded NAME=VALUE")
            }
            guard found.updateValue(value, forKey: name) == nil else {
                throw Malformed(reason: "\(ScreenText.visible(name, limit: 32)) appears twice")
            }
        }
        return found
    }

    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit), let value = UInt8(digits, radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        let decoded = String(decoding: bytes, as: UTF8.self)
        return decoded.utf8.elementsEqual(bytes) ? decoded : nil
    }
}

/// The address of a relay, `https://HOST:PORT`, exactly as it stands in `aud` and `htu`.
public struct RelayOrigin: Sendable, Hashable {
    public let text: String
    public let host: String
    public let port: Int

    public init?(_ text: String) {
        guard text.hasPrefix("https://") else { return nil }
        let authority = text.dropFirst("https://".count)
        let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
        // IPv6 addresses stand in brackets, and have colons of their own.
        let isIPv6 = authority.hasPrefix("[")
        let end = authority.firstIndex(of: "]").map { authority.index(after: $0) }
        let host = isIPv6 ? end.map { authority[..<$0] } : parts.first
        guard let host, !host.isEmpty else { return nil }
        let rest = authority[host.endIndex...]
        guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
        let digits = rest.dropFirst()
        guard let port = rest.isEmpty ? 443 : Int64(digits: digits), (1...65535).contains(port), !digits.hasPrefix("0"),
            host.utf8.allSatisfy({ byte in
                let isLetter = (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte)
                return isLetter || byte == 0x2d || byte == 0x2e || (isIPv6 && [0x5b, 0x5d, 0x3a].contains(byte))
            })
        else { return nil }
        self.text = text
        self.host = isIPv6 ? String(host.dropFirst().dropLast()) : String(host)
        self.port = Int(port)
    }
}
