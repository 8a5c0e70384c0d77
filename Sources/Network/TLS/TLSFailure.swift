import COpenSSL

/// What went wrong in TLS: everything that OpenSSL had queued, first cause first, as one value.
public struct TLSFailure: Error, Sendable, Equatable, CustomStringConvertible {
    public let what: String
    public let reasons: [String]

    public init(_ what: String, _ reasons: [String] = []) {
        self.what = what
        self.reasons = reasons
    }

    public var description: String {
        reasons.isEmpty ? what : what + ": " + reasons.joined(separator: "; ")
    }

    /// Empties this thread's queue, so that nothing of it is taken for the next call's failure.
    static func collected(_ what: String) -> TLSFailure {
        var reasons: [String] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { break }
            // The reason alone: the file and the function of OpenSSL's sources tell an operator nothing.
            if let text = ERR_reason_error_string(code) {
                reasons.append(String(cString: text))
            } else {
                reasons.append("error \(String(code, radix: 16))")
            }
        }
        return TLSFailure(what, reasons)
    }
}
