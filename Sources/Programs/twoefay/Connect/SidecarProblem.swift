import HTTP
import JSON

/// A refusal by the sidecar itself, as a problem document in the form of the relay's. Its codes are
/// none of the relay's, so a caller knows who answered; only `too_large` means the same at both.
enum SidecarProblem: String, CaseIterable {
    /// The relay has certainly not processed the request.
    case unreachable = "relay_unreachable"
    /// The relay may have processed the request, but its answer is missing.
    case unanswered = "relay_unanswered"
    case malformed = "connect_malformed"
    case unauthenticated = "connect_unauthenticated"
    case browser = "connect_browser"
    case route = "connect_route"
    case host = "connect_host"
    case tooLarge = "too_large"

    var status: Int {
        switch self {
        case .malformed: 400
        case .unauthenticated: 401
        // Not 404: that is the relay's answer for an unknown user.
        case .browser, .route: 403
        case .tooLarge: 413
        case .host: 421
        case .unreachable: 503
        case .unanswered: 504
        }
    }

    private var title: String {
        switch self {
        case .malformed: "Malformed request"
        case .unauthenticated: "Not authenticated"
        case .browser: "Not for browsers"
        case .route: "Not a route for websites"
        case .tooLarge: "The body is too large"
        case .host: "Not a name of this machine"
        case .unreachable: "The relay was not reached"
        case .unanswered: "The relay gave no answer"
        }
    }

    /// Further fields that the status needs.
    private var fields: [Fields.Field] {
        switch self {
        case .unauthenticated: [.init("www-authenticate", "Bearer")]
        case .unreachable: [.init("retry-after", "1")]
        case .malformed, .browser, .route, .tooLarge, .host, .unanswered: []
        }
    }

    func response(_ detail: String) -> Response {
        let body: JSONObject = [
            "type": .string("urn:twoefay:problem:\(rawValue)"), "title": .string(title),
            "status": .integer(Int64(status)), "code": .string(rawValue), "detail": .string(detail),
        ]
        let common: [Fields.Field] = [
            .init("content-type", "application/problem+json"), .init("cache-control", "no-store"),
            .init("content-language", "en"),
        ]
        return Response(status: status, fields: Fields(common + fields), body: JSONWriter.write(body))
    }
}
