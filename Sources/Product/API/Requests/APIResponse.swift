import HTTP
import JSON
import Relay

/// An answer before it has a request id.
struct APIResponse: Sendable {
    var status: Int
    var body: [UInt8]
    var fields: [Fields.Field] = []
    /// It holds something that is shown once, so it must not be kept for a repeated request.
    var holdsSecret = false

    init(_ status: Int, _ body: JSONObject) {
        self.status = status
        self.body = JSONWriter.write(body)
    }

    /// An answer as it was kept.
    init(status: Int, body: [UInt8]) {
        self.status = status
        self.body = body
    }

    init(_ problem: Problem) {
        self.init(problem.code.status, problem.body)
        if let seconds = problem.retryAfter { add("retry-after", String(seconds)) }
        if let methods = problem.allow { add("allow", methods) }
    }

    static let noContent = APIResponse(status: 204, body: [])

    mutating func add(_ name: String, _ value: String) { fields.append(Fields.Field(name, value)) }

    func response(to requestID: String) -> Response {
        var all: [Fields.Field] = []
        all.reserveCapacity(fields.count + 3)
        if !body.isEmpty {
            all.append(status < 400 ? Self.json : Self.problem)
            all.append(Self.noStore)
        }
        all.append(contentsOf: fields)
        all.append(Fields.Field("request-id", requestID))
        return Response(status: status, fields: Fields(all), body: body)
    }

    static let json = Fields.Field("content-type", "application/json")
    static let problem = Fields.Field("content-type", "application/problem+json")
    static let noStore = Fields.Field("cache-control", "no-store")
}

/// What a verb comes to: an answer, or a request that waits for one.
enum VerbOutcome: Sendable {
    case answer(APIResponse)
    /// `finish` makes the answer once what is waited for has happened, or the time is over; or holds again.
    case hold(HeldRequests.Ticket, Duration, finish: @Sendable () async throws(Refusal) -> VerbOutcome)
}

extension HeldRequests.Ticket: Wait {}
