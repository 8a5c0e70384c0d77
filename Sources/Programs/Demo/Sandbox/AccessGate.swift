import HTTP
import HTTP1

/// Stands before the pages of an origin: takes the run's secret out of the address, and lets in who has brought it.
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
        // What the refusal is drawn with.
        if Self.open.contains(request.path), let file = responder.file(for: request) { return file }
        return responder.page(PageFile.strangerHTML.text, status: 403)
    }

    /// The same address without the secret, which is not to stay in the browser's history.
    private func cleared(_ request: Request) -> String {
        let rest = (request.query ?? "").split(separator: "&").filter { !$0.hasPrefix("\(RunSecret.parameter)=") }
        // Two slashes at the beginning would name another host.
        let path = "/" + request.path.drop { $0 == "/" || $0 == "\\" }
        return rest.isEmpty ? path : "\(path)?\(rest.joined(separator: "&"))"
    }
}
