import Crypto
import HTTP
import JSON
import World

/// The relay's answer to a request, refusals included.
public struct RelayAnswer: Sendable {
    public let status: Int
    public let fields: Fields
    /// The JSON body; empty if there is none or if it is unreadable.
    public let body: JSONObject
    private let isReadable: Bool

    init(_ response: Response) {
        status = response.status
        fields = response.fields
        let object = (try? JSONReader.read(response.body))?.object
        body = object ?? [:]
        isReadable = object != nil || response.body.isEmpty
    }

    /// The time at which the answer was made (RFC 9110, `date`); nil if it is missing or malformed.
    var date: Timestamp? {
        let parts = fields["date"]?.split(separator: " ") ?? []
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard parts.count == 6, let month = months.firstIndex(of: String(parts[2])) else { return nil }
        let number = month < 9 ? "0\(month + 1)" : "\(month + 1)"
        return Timestamp(rfc3339: "\(parts[3])-\(number)-\(parts[1])T\(parts[4]).000Z")
    }

    /// The answer to a decision that was sent again. If the first sending has arrived, the relay
    /// refuses the second with the result of the challenge, which is then the answer.
    var ofRepetition: RelayAnswer {
        guard status == 409, body["code"] == "already_decided", let login = body["login"] else { return self }
        return RelayAnswer(status: 200, fields: fields, body: ["login": login])
    }

    private init(status: Int, fields: Fields, body: JSONObject) {
        self.status = status
        self.fields = fields
        self.body = body
        isReadable = true
    }

    /// Returns the body, or throws the refusal.
    @discardableResult public func accepted() throws(CallFailure) -> JSONObject {
        guard (200..<300).contains(status) else { throw .refused(refusal) }
        guard isReadable else { throw odd("not with a JSON object") }
        return body
    }

    /// Returns a required text.
    public func text(_ name: String) throws(CallFailure) -> String {
        guard let text = try accepted()[name]?.string else { throw odd("without \(name)") }
        return text
    }

    /// Returns an id that the relay assigned. Its characters are restricted, so it cannot imitate
    /// other text on a screen or in a command.
    func id(_ name: String) throws(CallFailure) -> String {
        let id = try text(name)
        guard Self.isID(id) else { throw odd("with an invalid \(name)") }
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

    /// Returns the number that the person enters on another phone; nil if there is none.
    func number() throws(CallFailure) -> String? {
        guard let value = try accepted()["number"], !value.isNull else { return nil }
        guard let number = value.string, (1...9).contains(number.utf8.count),
            number.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw odd("with an invalid number") }
        return number
    }

    /// Returns the relay's verdict on the attestation; nil if there is none.
    func verdict() throws(CallFailure) -> String? {
        guard let attestation = try accepted()["attestation"]?.object else { return nil }
        return attestation["verdict"]?.string.map { ScreenText.visible($0, limit: 32) }
    }

    /// Returns the required certificate, and checks that it is for this key.
    func certificate(for key: P256PrivateKey) throws(CallFailure) -> Certificate {
        let text = try text("certificate")
        guard let certificate = try? Certificate(pem: Array(text.utf8)) else {
            throw odd("with an invalid certificate")
        }
        guard certificate.spkiThumbprint == key.publicKey.spkiThumbprint else {
            throw odd("with a certificate for another key")
        }
        return certificate
    }

    /// Returns the certificate, and checks that it is for this key; nil if the phone gets it later.
    func certificateIfAny(for key: P256PrivateKey) throws(CallFailure) -> Certificate? {
        guard let value = try accepted()["certificate"], !value.isNull else { return nil }
        return try certificate(for: key)
    }

    /// Makes an error for an answer that is not a refusal but does not follow the protocol.
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

/// The part of a problem document (RFC 9457) that callers use.
public struct RelayRefusal: Sendable, Equatable {
    public let status: Int
    /// The stable code of the problem; nil if the answer has none.
    public let code: String?
    public let detail: String
    /// The requested pause in seconds; nil if the answer names none.
    public let retryAfter: Int64?

    public init(status: Int, code: String?, detail: String, retryAfter: Int64? = nil) {
        self.status = status
        self.code = code
        self.detail = detail
        self.retryAfter = retryAfter
    }
}

/// The reason why a call failed.
public enum CallFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The relay was not reached, so it has certainly done nothing.
    case notSent(String)
    /// The answer is missing, so the result is ambiguous: the relay may or may not have done the
    /// work.
    case ambiguous(String)
    case refused(RelayRefusal)
    /// The caller's own configuration or state is at fault, and nothing was sent.
    case unable(String)
    /// The relay has signed that this phone is unbound.
    case unbound(SignedFarewell)

    public var description: String {
        switch self {
        case .notSent(let reason): return "the relay was not reached: \(ScreenText.visible(reason))"
        case .ambiguous(let reason): return "the relay gave no answer: \(ScreenText.visible(reason))"
        case .refused(let refusal):
            let words = [refusal.code ?? "", refusal.detail].filter { !$0.isEmpty }.joined(separator: ": ")
            return "the relay answered \(refusal.status)" + (words.isEmpty ? "" : ", \(words)")
        case .unable(let reason): return reason
        case .unbound(let farewell):
            return "this phone was unbound (\(farewell.by)), as the relay has signed at \(farewell.time.rfc3339)"
        }
    }

    /// The refusal, if the relay answers and refuses this request only for now; nil otherwise.
    public var postponement: RelayRefusal? {
        guard case .refused(let refusal) = self, [429, 500, 503].contains(refusal.status) else { return nil }
        return refusal
    }

    /// Whether a later attempt may succeed: the relay was not reached, did not answer, or failed
    /// temporarily.
    public var mayPass: Bool {
        switch self {
        case .notSent, .ambiguous: true
        case .refused(let refusal): [429, 500, 502, 503, 504].contains(refusal.status)
        case .unable, .unbound: false
        }
    }
}
