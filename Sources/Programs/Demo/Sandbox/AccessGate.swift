import HTTP
import HTTP1

/// Admits to the pages of an origin only browsers that know the run's secret.
///
/// The secret arrives in the query of the first address. The gate moves it into a cookie, and
/// redirects to the same address without it. Tested in `PagesTests.swift` and
/// `DashboardDemoTests.swift`.
struct AccessGate: Pages {
    let pages: any Pages
    let responder: PageResponder
    let secret: RunSecret

    private static let open = [PageFile.baseCSS, .iconSVG].map { "/\($0.name)" }

    func answer(_ request: Request) async -> Response {
        let brought = FormText(query: request.query)[RunSecret.parameter]
        if request.method == "GET", secret.matches(brought) {
            return responder.redirect(to: cleared(request), fields: [.cookie(secret.cookie, secret.value)])
        }
        if secret.matches(request.cookie(secret.cookie)) { return await pages.answer(request) }
        // The files that the refusal page needs.
        if Self.open.contains(request.path), let file = responder.file(for: request) { return file }
        return responder.page(PageFile.accessDeniedHTML.text, status: 403)
    }

    /// Returns the same address without the secret, which must not stay in the browser's history.
    private func cleared(_ request: Request) -> String {
        let rest = (request.query ?? "").split(separator: "&").filter { !$0.hasPrefix("\(RunSecret.parameter)=") }
        // Two leading slashes would name another host.
        let path = "/" + request.path.drop { $0 == "/" || $0 == "\\" }
        return rest.isEmpty ? path : "\(path)?\(rest.joined(separator: "&"))"
    }
}
