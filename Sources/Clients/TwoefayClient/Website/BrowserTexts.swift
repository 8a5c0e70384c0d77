import Bytes
import Glibc

/// Values from a visitor's browser. They are cleaned or left out, and never a reason to refuse a login.
enum BrowserTexts {
    private static let mostCharacters = 512

    /// Returns the User-Agent as the relay accepts it; nil if nothing of it is visible.
    static func userAgent(_ text: String?) -> String? {
        text?.showable(limit: .max)?.trimmed.showable(limit: mostCharacters)?.trimmed
    }

    /// Returns an address in its short form; nil if the text is no address. A socket for both families
    /// maps addresses of IPv4, so these are mapped back.
    static func address(_ text: String?) -> String? {
        guard let text, !text.utf8.contains(0) else { return nil }
        var four = in_addr()
        if inet_pton(AF_INET, text, &four) == 1 { return written(AF_INET, &four) }
        var six = in6_addr()
        guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: six) { Array($0) }
        guard bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]) else { return written(AF_INET6, &six) }
        return bytes[12...].map(String.init).joined(separator: ".")
    }

    private static func written(_ family: Int32, _ address: UnsafeRawPointer) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            inet_ntop(family, address, buffer.baseAddress, socklen_t(buffer.count)).map { String(cString: $0) }
        }
    }
}
