/// The relay's answer to a request, refusals included.
public struct RelayAnswer: Sendable {
    public let status: Int
    public let fields: [String: String]
    /// The relay's certificate in the connection of the request.
    package let certificate: [UInt8]
    private let object: JSONObject?

    package init(_ reply: RelayReply) {
        status = reply.status
        fields = reply.fields
        certificate = reply.certificate
        object = reply.body.isEmpty ? [:] : JSONReader.object(reply.body)
    }

    private init(status: Int, of answer: RelayAnswer, _ object: JSONObject) {
        self.status = status
        fields = answer.fields
        certificate = answer.certificate
        self.object = object
    }

    /// The time at which the answer was made, in whole seconds.
    var date: Timestamp? { fields["date"].flatMap { Timestamp(httpDate: $0) } }

    /// The number of notices that no phone of the user has fetched. No field means none.
    var messageCount: Int { Int(Int64(digits: (fields["x-messagecount"] ?? "").prefix(9)) ?? 0) }

    /// Returns the body, or throws the refusal.
    @discardableResult public func accepted() throws(PhoneError) -> JSONObject {
        guard (200..<300).contains(status) else { throw .refused(refusal) }
        guard let object else { throw .odd("the body is no object of I-JSON") }
        return object
    }

    public var refusal: Refusal {
        let body = object ?? [:]
        return Refusal(
            status: status, code: body["code"]?.string.map { ScreenText.visible($0, limit: 64) } ?? "",
            detail: ScreenText.visible(body["detail"]?.string ?? ""),
            retryAfter: Int64(digits: fields["retry-after"] ?? ""),
            body: body)
    }

    func text(_ name: String) throws(PhoneError) -> String {
        guard let text = try accepted()[name]?.string else { throw .odd("\(name) is missing") }
        return text
    }

    /// Returns an id that the relay has assigned. Its characters are restricted, so that it cannot
    /// lead to another route or imitate another text.
    func id(_ name: String) throws(PhoneError) -> String {
        let id = try text(name)
        guard Self.isID(id) else { throw .odd("\(name) is no id") }
        return id
    }

    static func isID(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
                    || byte == 0x2d || byte == 0x5f
            }
    }

    /// Whether the relay refuses the time in a signed body: it is wrong, or no later than the last one.
    var refusesTime: Bool {
        (status == 400 || status == 409)
            && ["request", "status", "goodbye"].contains { refusal.says("mismatch", of: $0) }
    }

    /// The answer to a decision that was sent again. If the first sending has arrived, the relay
    /// refuses the second with the result of the challenge, which then is the answer.
    var ofRepetition: RelayAnswer {
        guard status == 409, refusal.code == "already_decided", let login = object?["login"] else { return self }
        return RelayAnswer(status: 200, of: self, ["login": login])
    }
}

/// A problem document of the relay (RFC 9457).
public struct Refusal: Error, Sendable, Equatable {
    public let status: Int
    /// The stable code; empty if the answer has none.
    public let code: String
    /// A text for people, in the language of the request. Show it as plain text.
    public let detail: String
    /// The pause in seconds before the next attempt.
    public let retryAfter: Int64?
    /// The whole document, such as `tries_left`, `unmet` and `errors`.
    public let body: JSONObject

    /// The tries that are left after a wrong PIN, PUK or code of the help desk.
    public var triesLeft: Int64? { body["tries_left"]?.integer }

    /// Whether the entry for a parameter has this code.
    public func says(_ code: String, of parameter: String) -> Bool {
        (body["errors"]?.array ?? []).contains {
            $0.object?["parameter"]?.string == parameter && $0.object?["code"]?.string == code
        }
    }
}

/// The reason why a call failed.
public enum PhoneError: Error, Sendable, Equatable {
    case refused(Refusal)
    /// The answer does not follow the protocol, or is not proved. The app shows and stores nothing
    /// of it.
    case odd(String)
    /// The server is not the relay, or a clock is wrong. Nothing was sent.
    case untrusted(String)
    case notSent(String)
    /// The relay may or may not have done the work.
    case noAnswer(String)
    /// The app or the state of the phone is at fault, and nothing was sent.
    case unable(String)
    /// The relay has signed that this phone is unbound. `Phone.forget` may follow.
    case unbound(Farewell)

    init(_ failure: TransportFailure) {
        switch failure {
        case .untrusted(let reason): self = .untrusted(reason)
        case .notSent(let reason): self = .notSent(reason)
        case .noAnswer(let reason): self = .noAnswer(reason)
        }
    }

    /// Whether the same may succeed later.
    public var mayPass: Bool {
        switch self {
        case .notSent, .noAnswer: true
        case .refused(let refusal): refusal.status == 429 || refusal.status >= 500
        case .odd, .untrusted, .unable, .unbound: false
        }
    }

    var hasNoAnswer: Bool {
        switch self {
        case .notSent, .noAnswer: true
        case .refused(let refusal): refusal.status >= 500
        case .odd, .untrusted, .unable, .unbound: false
        }
    }
}

/// Runs a part that may throw any error, such as a signature with a key that the person has not
/// released.
func signing<Value>(_ work: () throws -> Value) throws(PhoneError) -> Value {
    do {
        return try work()
    } catch let error as PhoneError {
        throw error
    } catch {
        throw .unable("\(error)")
    }
}
