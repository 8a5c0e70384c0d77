import Domain
import HTTP
import PhoneApp

/// The handler of the listener for browsers (`phone.listen`): the routes of phones, the phone's web
/// app, and nothing else.
///
/// A page in a browser can be a phone, but it cannot choose a client certificate, and a browser would
/// ask the person for one if the server did. So browsers have a listener of their own, which requests
/// none. Pages of the listener's own origin may call it, and those of the origins that the operator
/// lists (CORS). Credentials are never allowed: a phone proves each request by DPoP, and no cookie
/// counts.
///
/// Invariants: no route of websites is served. An answer names an origin only if it is listed and the
/// caller's own. What a page of another origin could send without asking first reaches nothing that
/// it may not have, because bodies need a type and proofs a field that browsers ask for.
///
/// Tests: `APITests/BrowserSiteTests.swift`, `EndToEndTests/BrowserListenerTests.swift`.
public final class BrowserSite: Handler {
    private static let table = RouteTable(routes: API.table.routes.filter(\.isForBrowsers))
    /// The fields that pages may send.
    private static let requestFields =
        "accept-language, accept-user-language, content-type, dpop, nonce, prefer"
    /// The fields of answers that pages may read.
    private static let responseFields =
        "date, dpop-nonce, preference-applied, request-id, retry-after, www-authenticate, x-messagecount"
    /// The seconds for which a browser need not ask again.
    private static let age = "7200"

    private let api: API
    private let origins: Set<String>
    private let app: PhoneApp?

    /// - Parameters:
    ///   - origins: the origins of pages, besides the listener's own, that may call.
    ///   - app: the app that is served; nil for the routes alone.
    public init(_ api: API, origins: [WebAddress], app: PhoneApp?) {
        self.api = api
        self.app = app
        self.origins = Set(origins.map(\.origin))
    }

    public func handle(_ request: Request) -> Reply {
        // The files are no concern of other origins, so they have no CORS fields.
        if let file = app?.answer(request) { return .now(file) }
        let origin = listed(request.fields)
        if request.method == "OPTIONS", let wanted = request.fields["access-control-request-method"] {
            return .now(permission(for: wanted, request, origin))
        }
        return api.handle(request, in: Self.table).mapping { Self.open($0, to: origin) }
    }

    public func refuse(_ fault: RequestFault, _ fields: Fields, hasCertificate: Bool) -> Response {
        Self.open(api.refuse(fault, fields, hasCertificate: hasCertificate), to: listed(fields))
    }

    /// The caller's origin, if it is listed. A request with two of them comes from no browser.
    private func listed(_ fields: Fields) -> String? {
        let values = fields.values("origin")
        guard values.count == 1, let origin = values.first, origins.contains(origin) else { return nil }
        return origin
    }

    /// The answer to a browser that asks whether a page may send a request. Without a permission it
    /// sends none.
    private func permission(for method: String, _ request: Request, _ origin: String?) -> Response {
        var response = Response(status: 204)
        guard let origin, case .route = Self.table.match(method, request.path) else {
            response.fields.add("vary", "origin")
            return response
        }
        response = Self.open(response, to: origin)
        response.fields.add("access-control-allow-methods", method)
        response.fields.add("access-control-allow-headers", Self.requestFields)
        response.fields.add("access-control-max-age", Self.age)
        return response
    }

    /// Lets a page of this origin read an answer.
    private static func open(_ response: Response, to origin: String?) -> Response {
        var response = response
        response.fields.add("vary", "origin")
        guard let origin else { return response }
        response.fields.add("access-control-allow-origin", origin)
        response.fields.add("access-control-expose-headers", responseFields)
        return response
    }
}

extension Route {
    /// Whether a phone in a browser uses it.
    fileprivate var isForBrowsers: Bool {
        forms.contains { form in
            switch form.action {
            case .phone: true
            case .website: false
            // Those that change something are for phones alone: a binding, a revocation, a goodbye.
            case .anyone: method == "POST" || Self.shown.contains(name)
            }
        }
    }

    private static let shown = Set((Health.routes + Clock.routes + PushKeys.routes).map(\.name))
}

extension Reply {
    /// The same reply with each of its responses changed.
    fileprivate func mapping(_ change: @escaping @Sendable (Response) -> Response) -> Reply {
        switch self {
        case .now(let response): .now(change(response))
        case .later(let deadline, let late, let work):
            .later(deadline: deadline, late: { change(late()) }, work: { await work().mapping(change) })
        }
    }
}

extension Outcome {
    fileprivate func mapping(_ change: @escaping @Sendable (Response) -> Response) -> Outcome {
        switch self {
        case .response(let response): .response(change(response))
        case .held(let hold):
            .held(
                Hold(duration: hold.duration, owner: hold.owner, wait: hold.wait) {
                    await hold.finish().mapping(change)
                })
        }
    }
}
