import Bytes
import HTTP

/// The content of the QR code that binds a phone: the relay's address and pin, the website, the
/// user and the code.
///
/// Invariant: two parsers cannot read the same URI differently. A duplicate parameter is therefore
/// an error. Tested in `ActivationURITests.swift`.
public struct ActivationURI: Sendable {
    public let relay: WebAddress
    public let website: String
    /// The opaque id of the user.
    public let token: String
    public let code: String
    /// The SHA-256 of the public key of the relay's authority. A server with another authority is
    /// not the relay.
    public let pin: [UInt8]
    /// The website's secret, which the relay never sees; nil unless the website drew the QR code
    /// itself.
    public let websiteKey: Secret?

    public struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String

        init(_ description: String) { self.description = ScreenText.visible(description, limit: 200) }
    }

    public static let start = "twoefay://enrol?"
    /// The path of the web app, whose links have the same parameters.
    private static let appPath = "/phone/"

    /// Parses a URI, or a link to the web app. Unknown parameters are ignored, because a later relay
    /// may add some.
    public init(_ text: String) throws(Malformed) {
        let app = Self.app(of: text)
        guard app != nil || text.hasPrefix(Self.start) else {
            throw Malformed("it does not begin with \(Self.start), and is no link to a web app")
        }
        let query = app == nil ? text.dropFirst(Self.start.count) : text.drop { $0 != "#" }.dropFirst()
        let parameters = try Self.parameters(query)
        func value(_ name: String) throws(Malformed) -> String {
            guard let value = parameters[name], !value.isEmpty else { throw Malformed("\(name) is missing") }
            return value
        }
        guard let relay = WebAddress(parameters["relay"] ?? "") else {
            throw Malformed("relay must be https://HOST or https://HOST:PORT, with no path and no / at the end")
        }
        self.relay = relay
        website = try value("website")
        guard Self.isName(website) else {
            throw Malformed("website must be a name: at most 64 lowercase letters, digits, dots and dashes")
        }
        token = try value("token")
        code = try value("code")
        guard let pin = Base64URL.decode(try value("pin")), pin.count == 32 else {
            throw Malformed("pin is not a SHA-256 in base64url")
        }
        self.pin = pin
        guard let text = parameters["k"] else {
            websiteKey = nil
            return
        }
        guard let key = Base64URL.decode(text), key.count == 32 else {
            throw Malformed("k is not 256 bits in base64url")
        }
        // The relay could read it by another page.
        let ofRelay = [relay, parameters["at"].flatMap { WebAddress($0) }].compactMap { $0?.host.lowercased() }
        guard !ofRelay.contains(where: { $0 == app?.host.lowercased() }) else {
            throw Malformed("k must not be in a link to a host of the relay")
        }
        websiteKey = Secret(key)
    }

    /// The address of the web app that a link leads to; nil for anything else.
    private static func app(of text: String) -> WebAddress? {
        let place = text.prefix { $0 != "#" }
        guard place.count < text.count, place.hasSuffix(appPath) else { return nil }
        return WebAddress(String(place.dropLast(appPath.count)))
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.count <= 64 && text.first.map { $0 != "." && $0 != "-" } == true
            && text.utf8.allSatisfy { byte in
                (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
                    || byte == UInt8(ascii: ".")
            }
    }

    private static func parameters(_ query: Substring) throws(Malformed) -> [String: String] {
        var found: [String: String] = [:]
        for pair in query.split(separator: "&", omittingEmptySubsequences: false) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let name = decoded(parts[0]), let value = decoded(parts[1]) else {
                throw Malformed("\(pair) is not a percent-encoded NAME=VALUE")
            }
            // With two values, this parser might use one and another parser the other.
            guard found.updateValue(value, forKey: name) == nil else { throw Malformed("\(name) occurs twice") }
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
            let digits = String(decoding: rest.prefix(2), as: UTF8.self).lowercased()
            guard let value = Hex.decode(digits), value.count == 1 else { return nil }
            bytes += value
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
