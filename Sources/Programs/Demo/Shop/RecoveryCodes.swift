import HTTP
import TwoefayClient

/// Pages for ten recovery codes, for the case that all other factors are lost.
extension Shop {
    func recoveryPage(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        let areThere = try await website.relay.user(account).factors.contains { $0.kind == .recovery }
        let state: HTML =
            areThere ? #"<p><span class="badge good">\#(visit(.recoveryCodesAreThere))</span></p>"# : ""
        return page(
            visit, .recoveryCodes,
            """
            <div class="card">
            <p>\(visit(.recoveryCodesUse))</p>
            \(state)
            \(form(visit, "/recovery", "", Button(areThere ? .makeNewRecoveryCodes : .makeRecoveryCodes)))
            </div>
            """)
    }

    func makeRecoveryCodes(
        _ visit: PageRequest, _ account: String, approval: String? = nil
    ) async throws(CallFault) -> Response {
        try await asking(visit, account, for: .recoveryCodes) { () throws(CallFault) in
            let codes = try await website.relay.recoveryCodes(for: account, approval: approval)
            return recoveryCodesPage(visit, codes)
        }
    }

    /// Returns the page with the codes, as the answer to the request that made them. The website
    /// does not store the codes, so no other page can show them.
    private func recoveryCodesPage(_ visit: PageRequest, _ codes: [String]) -> Response {
        let items = codes.map { code -> HTML in "<li><code>\(code)</code></li>" }
        return page(
            visit, .recoveryCodes,
            """
            <div class="card">
            <p class="notice warn">\(visit(.shownOnce))</p>
            <ol class="codes" id="codes">
            \(items)
            </ol>
            <div class="row">
            <button class="copy" type="button" data-copy="codes" data-done="\(visit(.copied))" hidden>\(visit(.copy))</button>
            <a class="button primary" href="/members">\(visit(.haveThem))</a>
            </div>
            </div>
            """)
    }
}
