/// The routes of the API that websites use, for a program that passes a website's requests on.
///
/// They are the routes with a form for websites, and what anyone may read: the health checks, the
/// description of the API and the like. A request matches here exactly if the relay itself would
/// find the same route for it, because both use the same table and the same matching.
///
/// Tests: `APITests/WebsiteRoutesTests.swift`.
public enum WebsiteRoutes {
    public enum Match: Sendable, Equatable {
        case route
        /// The path has routes for websites, but for these methods only.
        case wrongMethod(allow: String)
        case nothing
    }

    private static let table = RouteTable(routes: API.table.routes.filter(\.isForWebsites))

    /// - Parameter path: the path as received, without the query.
    public static func match(_ method: String, _ path: String) -> Match {
        switch table.match(method, path) {
        case .route: .route
        case .wrongMethod(_, let allow): .wrongMethod(allow: allow)
        case .nothing: .nothing
        }
    }

    /// Each route as method and pattern, such as `GET /user/{username}`.
    public static var all: [String] { table.routes.map { "\($0.method) \($0.path.text)" } }
}

extension Route {
    fileprivate var isForWebsites: Bool {
        forms.contains { form in
            switch form.action {
            case .website: true
            case .anyone: method == "GET"
            case .phone: false
            }
        }
    }
}
