import COpenSSL

/// A failure in OpenSSL, with all reasons that it gave. It never contains key material.
public struct CryptoFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The operation that failed.
    public let what: String
    /// OpenSSL's reasons, oldest first.
    public let reasons: [String]

    public init(_ what: String, reasons: [String] = []) {
        self.what = what
        self.reasons = reasons
    }

    /// Takes the whole error queue of this thread, so that no error is mistaken for one of the next
    /// call.
    public static func drained(_ what: String) -> CryptoFailure {
        var reasons: [String] = []
        while case let code = ERR_get_error(), code != 0 {
            if let reason = ERR_reason_error_string(code) {
                reasons.append(String(cString: reason))
            } else {
                reasons.append("error \(String(code, radix: 16))")
            }
        }
        return CryptoFailure(what, reasons: reasons)
    }

    public var description: String { reasons.isEmpty ? what : "\(what): \(reasons.joined(separator: ", "))" }
}
