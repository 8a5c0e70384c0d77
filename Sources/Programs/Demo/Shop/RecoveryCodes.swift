import HTTP
import TwoefayClient

/// Pages for ten recovery codes, for the case that all other factors are lost.
extension Shop {
    func recoveryPage(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        let factors = try await website.relay.user(account).factors
        let areThere = factors.contains { $0.kind == .recovery && $0.state != .waiting }
        let check: HTML =
            factors.contains { $0.kind == .recovery && $0.state == .waiting }
            ? #"<p><a class="button" href="/recovery/check">\#(visit(.checkRecoveryCodes))</a></p>"# : ""
        let state: HTML =
            areThere ? #"<p><span class="badge good">\#(visit(.recoveryCodesAreThere))</span></p>"# : ""
        return page(
            visit, .recoveryCodes,
            """
            <div class="card">
            <p>\(visit(.recoveryCodesUse))</p>
            \(state)
            \(check)
            \(form(visit, "/recovery", "", Button(areThere ? .makeNewRecoveryCodes : .makeRecoveryCodes)))
            </div>
            """)
    }

    func makeRecoveryCodes(
        _ visit: PageRequest, _ account: String, approval: String? = nil
    ) async throws(CallFault) -> Response {
        try await asking(visit, account, for: .recoveryCodes) { () throws(CallFault) in
            let codes = try await website.relay.recoveryCodes(for: account, approval: approval)
            return recoveryCodesPage(visit, codes.codes, isChecked: codes.position != nil)
        }
    }

    /// Returns the page with the codes, as the answer to the request that made them. The website
    /// does not store the codes, so no other page can show them.
    private func recoveryCodesPage(_ visit: PageRequest, _ codes: [String], isChecked: Bool) -> Response {
        let next: HTML = isChecked ? "/recovery/check" : "/members"
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
            <a class="button primary" href="\(next)">\(visit(.haveThem))</a>
            </div>
            </div>
            """)
    }

    /// The page on which the customer types one of the new codes back. Only that makes them valid:
    /// without this step, a customer who saved nothing would notice it when everything else is lost.
    func checkRecoveryCodesPage(
        _ visit: PageRequest, _ account: String, status: Int = 200, _ fault: ShopText? = nil,
        fields: [Fields.Field] = []
    ) async throws(CallFault) -> Response {
        let user = try await website.relay.user(account)
        let waiting = user.factors.first { $0.kind == .recovery && $0.state == .waiting }
        guard let position = waiting?.position else { return go(visit, to: "/recovery") }
        let help: HTML =
            user.areCodesLocked
            ? #"<p class="muted">\#(visit(.operatorUnlocksCodes)) <code>twoefay user unlock \#(account)</code></p>"#
            : ""
        return page(
            visit, .checkRecoveryCodes,
            """
            <div class="card">
            <p>\(visit(.typeRecoveryCode(position)))</p>
            \(form(visit, "/recovery/check", recoveryCodeField(visit, fault: fault), Button(.confirm)))
            </div>
            \(help)
            """, status: status, fields: fields)
    }

    func checkRecoveryCodes(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        do throws(CallFault) {
            guard try await website.relay.confirmRecoveryCodes(of: account, code: visit.field("code")) else {
                return try await checkRecoveryCodesPage(visit, account, status: 422, .wrongRecoveryCode)
            }
            return go(visit, to: "/recovery", .init(kind: .good, text: .recoveryCodesChecked))
        } catch {
            switch error.problem?.code {
            case .invalid: return try await checkRecoveryCodesPage(visit, account, status: 422, .wrongRecoveryCode)
            case .limited:
                return try await checkRecoveryCodesPage(
                    visit, account, status: 429, Self.patience(error), fields: Self.retry(error))
            case .codesLocked:
                return try await checkRecoveryCodesPage(visit, account, status: 403, .codesWaitForUnlock)
            case .conflict: return go(visit, to: "/recovery", .init(kind: .warn, text: .beginAnew))
            default: throw error
            }
        }
    }
}
