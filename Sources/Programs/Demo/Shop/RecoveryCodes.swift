import HTTP
import TwoefayClient

/// Ten codes for a drawer: for the day on which nothing else is left.
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

    /// Shown once: by the very answer that made them. The website keeps none, for no other page.
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
