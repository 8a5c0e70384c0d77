import Domain
import HTTP
import JSON
import Relay

/// An answer before it gets its request id.
struct APIResponse: Sendable {
    var status: Int
    var body: [UInt8]
    var fields: [Fields.Field] = []
    /// Whether the body has a secret that is shown once. Then it is not stored for a repeated
    /// request.
    var holdsSecret = false
    /// The type of a body that is not JSON. The answer's own fields then say how long it may be
    /// stored.
    var contentType: String?
    /// The number of notices that no phone of the user has fetched; nil if it is that of the
    /// caller.
    var messageCount: Int?

    init(_ status: Int, _ body: JSONObject) {
        self.status = status
        self.body = JSONWriter.write(body)
    }

    /// An answer that was stored under an idempotency key.
    init(status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }

    /// A problem in the language that the header fields of its request ask for.
    init(_ problem: Problem, to fields: Fields) { self.init(problem, in: AcceptLanguage.textLanguage(fields)) }

    init(_ problem: Problem, in language: TextLanguage) {
        self.init(problem.code.status, problem.body(in: language))
        add(language)
        if let seconds = problem.retryAfter { add("retry-after", String(seconds)) }
        if let methods = problem.allow { add("allow", methods) }
    }

    static let noContent = APIResponse(status: 204, body: [])

    /// Names the language of the texts, and the fields that select it.
    mutating func add(_ language: TextLanguage) {
        add("content-language", language.rawValue)
        fields.append(Self.vary)
    }

    mutating func add(_ name: String, _ value: String) { fields.append(Fields.Field(name, value)) }

    /// Says that the preference `wait` was applied, if the request had one.
    mutating func apply(wait patience: Int?) {
        if let patience { add("preference-applied", "wait=\(patience)") }
    }

    /// Adds the number of unread notices, if the caller is a phone. A phone that sees no such field
    /// knows that there is none.
    func counting(for caller: Caller) -> APIResponse {
        guard case .phone(let phone) = caller else { return self }
        let count = messageCount ?? phone.unread
        var answer = self
        if count > 0 { answer.add("x-messagecount", String(count)) }
        return answer
    }

    func response(to requestID: String) -> Response {
        var all = Fields()
        if let contentType {
            all.add("content-type", contentType)
        } else if !body.isEmpty {
            all.add(status < 400 ? Self.json : Self.problem)
            all.add(Self.noStore)
        }
        for field in fields { all.add(field) }
        all.add("request-id", requestID)
        return Response(status: status, fields: all, body: body)
    }

    static let json = Fields.Field("content-type", "application/json")
    static let problem = Fields.Field("content-type", "application/problem+json")
    static let noStore = Fields.Field("cache-control", "no-store")
    static let vary = Fields.Field("vary", "accept-language, accept-user-language")
}

/// The outcome of a verb: an answer, or a held request.
enum VerbOutcome: Sendable {
    case answer(APIResponse)
    /// An answer that the change has kept under the idempotency key.
    case kept(APIResponse)
    /// The idempotency key must be claimed before the change, of which nothing has happened.
    ///
    /// - Parameter isCounted: whether the request was counted in the website's limits.
    case unclaimed(isCounted: Bool)
    /// A held request with its longest time. `finish` makes the answer after the event or the
    /// timeout, or holds the request again. It gets the caller as it was looked up then. It lives for
    /// as long as the request is held, so it must not capture the `VerbCall`.
    case hold(HeldRequests.Ticket, Duration, finish: @Sendable (Caller) async throws(Refusal) -> VerbOutcome)
}

extension HeldRequests.Ticket: Wait {}
