import Crypto
import HTTP
import JSON

/// What the relay said.
public struct RelayAnswer: Sendable {
    public let status: Int
    public let fields: Fields
    /// Empty where there is none.
    public let body: JSONObject
    private let isReadable: Bool

    init(_ response: Response) {
        status = response.status
        fields = response.fields
        let object = (try? JSONReader.read(response.body))?.object
        body = object ?? [:]
        isReadable = object != nil || response.body.isEmpty
    }

    /// The body of an answer that is no refusal.
    @discardableResult public func accepted() throws(CallFailure) -> JSONObject {
        guard (200..<300).contains(status) else { throw .refused(refusal) }
        guard isReadable else { throw odd("not with a JSON object") }
        return body
    }

    /// A text that must be there.
    public func text(_ name: String) throws(CallFailure) -> String {
        guard let text = try accepted()[name]?.string else { throw odd("without \(name)") }
        return text
    }

    /// What the relay made up to name something: on screens and in commands it is what it seems.
    func id(_ name: String) throws(CallFailure) -> String {
        let id = try text(name)
        guard Self.isID(id) else { throw odd("with a \(name) that is none") }
        return id
    }

    static func isID(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
    }

    /// The number that the person carries to another phone, where there is one.
    func number() throws(CallFailure) -> String? {
        guard let value = try accepted()["number"], !value.isNull else { return nil }
        guard let number = value.string, (1...9).contains(number.utf8.count),
            number.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw odd("with a number that is none") }
        return number
    }

    /// The certificate that must be there, for that key.
    func certificate(for key: P256PrivateKey) throws(CallFailure) -> Certificate {
        let text = try text("certificate")
        guard let certificate = try? Certificate(pem: Array(text.utf8)) else {
            throw odd("with a certificate that cannot be read")
        }
        guard certificate.spkiThumbprint == key.publicKey.spkiThumbprint else {
            throw odd("with a certificate for another key")
        }
        return certificate
    }

    /// No refusal, and not what was agreed either.
    public func odd(_ what: String) -> CallFailure {
        .refused(
            RelayRefusal(status: status, code: nil, detail: ScreenText.visible(what, limit: 1000), retryAfter: nil))
    }

    private var refusal: RelayRefusal {
        RelayRefusal(
            status: status, code: body["code"]?.string.map { ScreenText.visible($0, limit: 100) },
            detail: ScreenText.visible(body["detail"]?.string ?? body["title"]?.string ?? "", limit: 1000),
            retryAfter: fields["retry-after"].flatMap { Int64($0) })
    }
}

/// A problem document (RFC 9457), as far as a caller goes by it.
public struct RelayRefusal: Sendable, Equatable {
    public let status: Int
    /// The stable word, where there is one.
    public let code: String?
    public let detail: String
    /// Seconds.
    public let retryAfter: Int64?

    public init(status: Int, code: String?, detail: String, retryAfter: Int64? = nil) {
        self.status = status
        self.code = code
        self.detail = detail
        self.retryAfter = retryAfter
    }
}

/// Why a call came to nothing.
public enum CallFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The relay has certainly done nothing.
    case notSent(String)
    /// Nobody knows what the relay has done.
    case ambiguous(String)
    case refused(RelayRefusal)
    /// The caller's own affair, before anything was sent.
    case unable(String)

    public var description: String {
        switch self {
        case .notSent(let reason): return "the relay was not reached: \(ScreenText.visible(reason))"
        case .ambiguous(let reason): return "the relay gave no answer: \(ScreenText.visible(reason))"
        case .refused(let refusal):
            let words = [refusal.code ?? "", refusal.detail].filter { !$0.isEmpty }.joined(separator: ": ")
            return "the relay answered \(refusal.status)" + (words.isEmpty ? "" : ", \(words)")
        case .unable(let reason): return reason
        }
    }

    /// Worth another try, later: it was not reached, said nothing, or asked for patience.
    public var mayPass: Bool {
        switch self {
        case .notSent, .ambiguous: true
        case .refused(let refusal): [429, 500, 502, 503, 504].contains(refusal.status)
        case .unable: false
        }
    }
}
