import COpenSSL

/// A failure in TLS, with all errors in OpenSSL's queue, first cause first.
public struct TLSFailure: Error, Sendable, Equatable, CustomStringConvertible {
    public let what: String
    public let reasons: [String]
    /// The certificate of a client that ended its handshake.
    public let certificate: RefusedCertificate?

    public init(_ what: String, _ reasons: [String] = [], certificate: RefusedCertificate? = nil) {
        self.what = what
        self.reasons = reasons
        self.certificate = certificate
    }

    public var description: String {
        reasons.isEmpty ? what : what + ": " + reasons.joined(separator: "; ")
    }

    /// Takes all errors from this thread's queue, so that none is mistaken for an error of the next
    /// call.
    static func collected(_ what: String) -> TLSFailure {
        var reasons: [String] = []
        while true {
            let code = ERR_get_error()
            guard code != 0 else { break }
            // Only the reason: file and function in OpenSSL's sources do not help an operator.
            if let text = ERR_reason_error_string(code) {
                reasons.append(String(cString: text))
            } else {
                reasons.append("error \(String(code, radix: 16))")
            }
        }
        return TLSFailure(what, reasons)
    }
}
