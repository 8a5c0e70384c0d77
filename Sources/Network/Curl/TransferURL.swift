import EventLoop
import Glibc
import HTTP

/// An absolute `http:` or `https:` URL, parsed so strictly that every parser understands the same:
/// visible ASCII, a host that is a name or an address in its usual form, no user, no fragment.
public struct TransferURL: Sendable, Hashable {
    public let secure: Bool
    /// The host in lower case, without brackets.
    public let host: String
    /// The port as written; nil for the default port.
    public let port: UInt16?
    /// The path, with the query if there is one.
    public let path: String

    /// Parses a URL. Returns nil for anything else.
    public init?(_ text: String) {
        guard text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && !Self.confusing.contains($0) }) else { return nil }
        let schemes = [("https://", true), ("http://", false)]
        guard let (scheme, secure) = schemes.first(where: { text.hasPrefix($0.0) }) else { return nil }
        let rest = text.dropFirst(scheme.count)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard let (host, port) = WebAddress.split(String(rest[..<end])), port != 0, Self.isPlain(host) else {
            return nil
        }
        self.secure = secure
        self.host = host.lowercased()
        self.port = port == (secure ? 443 : 80) ? nil : port
        let path = String(rest[end...])
        self.path = path.hasPrefix("/") ? path : "/" + path
    }

    /// Backslashes, fragments, and characters that a URL may contain only as an escape.
    private static let confusing = Set("\\#<>\"`{}|^ ".utf8)

    /// Whether the host cannot be mistaken for another. Some parsers take names that end in a
    /// number for IPv4 addresses, in forms that other parsers do not know: `127.1`, `0x7f.1`.
    private static func isPlain(_ host: String) -> Bool {
        guard !host.contains(":"), AddressRange.bytes(of: host) == nil else { return true }
        var labels = host.split(separator: ".", omittingEmptySubsequences: false)
        if labels.last == "" { labels.removeLast() }
        guard let last = labels.last, !labels.contains("") else { return false }
        let isNumber = last.utf8.allSatisfy { (0x30...0x39).contains($0) }
        return !isNumber && !last.lowercased().hasPrefix("0x")
    }

    /// The origin (RFC 6454 §6.2).
    public var origin: String { WebAddress(secure: secure, host: host, port: port).text }
    public var text: String { origin + path }

    /// Returns the URL with one more segment of its path; nil if it has a query.
    public func appending(_ segment: String) -> TransferURL? {
        guard !path.contains("?") else { return nil }
        return TransferURL(origin + path + (path.hasSuffix("/") ? "" : "/") + segment)
    }
}
