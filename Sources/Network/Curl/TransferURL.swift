import EventLoop
import Glibc
import HTTP

/// An absolute `http:` or `https:` URL, read so narrowly that it means the same to everybody: visible ASCII, a host that is
/// a name or an address in its usual form, no user, no fragment.
public struct TransferURL: Sendable, Hashable {
    public let secure: Bool
    /// In small letters, without brackets.
    public let host: String
    /// As written; nil is the usual port.
    public let port: UInt16?
    /// With the query, if there is one.
    public let path: String

    /// Nil for everything else.
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

    /// Backslashes, fragments, and what may stand in a URL only as an escape.
    private static let confusing = Set("\\#<>\"`{}|^ ".utf8)

    /// Names that end in a number are taken for IPv4 addresses by some, in forms that others do not know: `127.1`, `0x7f.1`.
    private static func isPlain(_ host: String) -> Bool {
        guard !host.contains(":"), AddressRange.bytes(of: host) == nil else { return true }
        var labels = host.split(separator: ".", omittingEmptySubsequences: false)
        if labels.last == "" { labels.removeLast() }
        guard let last = labels.last, !labels.contains("") else { return false }
        let isNumber = last.utf8.allSatisfy { (0x30...0x39).contains($0) }
        return !isNumber && !last.lowercased().hasPrefix("0x")
    }

    /// RFC 6454 §6.2.
    public var origin: String { WebAddress(secure: secure, host: host, port: port).text }
    public var text: String { origin + path }
}
