import HTTP
import TwoefayClient
import World

/// Pages for an authenticator app (TOTP), which works when the phone has no connection.
extension Shop {
    func authenticatorPage(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        let isThere = try await website.relay.user(account).factors.contains {
            $0.kind == .totp && $0.state != .waiting
        }
        let body: HTML =
            isThere
            ? """
            <p><span class="badge good">\(visit(.authenticatorIsThere))</span></p>
            <p><a class="button danger" href="/totp/remove">\(visit(.removeAuthenticator))</a></p>
            """
            : "\(form(visit, "/totp", "", Button(.addAuthenticator)))"
        return page(
            visit, .authenticator,
            """
            <div class="card">
            <p>\(visit(.authenticatorUse))</p>
            \(body)
            </div>
            """)
    }

    func addAuthenticator(
        _ visit: PageRequest, _ account: String, approval: String? = nil
    ) async throws(CallFault) -> Response {
        try await asking(visit, account, for: .authenticator) { () throws(CallFault) in
            let setup = try await website.relay.addTOTP(for: account, approval: approval)
            sessions.change(visit.id) { $0.authenticator = setup }
            return go(visit, to: "/totp/confirm")
        }
    }

    /// The page on which the customer enters the app's first code. Only that code activates the
    /// app: without this step, an app that did not read the secret would lock the customer out.
    func confirmAuthenticatorPage(
        _ visit: PageRequest, status: Int = 200, _ fault: ShopText? = nil, fields: [Fields.Field] = []
    ) -> Response {
        guard let setup = visit.session.authenticator, setup.expiresAt > time.now() else {
            return go(visit, to: "/totp")
        }
        let code = field(
            visit, "code", .appCode,
            attributes: """
                class="digits" autocomplete="one-time-code" inputmode="numeric" maxlength="16" required
                """, fault: fault)
        return page(
            visit, .addAuthenticator,
            """
            <div class="card">
            <ol>
            <li>\(visit(.scanWithApp))</li>
            <li>\(visit(.typeItsCode))</li>
            </ol>
            \(qr(visit, setup.uri, .qrOfSecret))
            <p>\(visit(.secretIs)) <span class="code">\(Self.inGroups(setup.secret))</span></p>
            \(form(visit, "/totp/confirm", code, Button(.confirm)))
            </div>
            """, status: status, fields: fields)
    }

    /// Returns the secret in groups of four characters, which people can type. Apps ignore the
    /// spaces.
    private static func inGroups(_ secret: String) -> String {
        secret.enumerated().map { $0 > 0 && $0 % 4 == 0 ? " \($1)" : "\($1)" }.joined()
    }

    func confirmAuthenticator(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        do throws(CallFault) {
            guard try await website.relay.confirmTOTP(of: account, code: code(of: visit)) else {
                return confirmAuthenticatorPage(visit, status: 422, .wrongCode)
            }
            sessions.change(visit.id) { $0.authenticator = nil }
            return go(visit, to: "/totp", .init(kind: .good, text: .authenticatorAdded))
        } catch {
            switch error.problem?.code {
            case .invalid: return confirmAuthenticatorPage(visit, status: 422, .wrongCode)
            case .limited:
                return confirmAuthenticatorPage(
                    visit, status: 429, Self.patience(error), fields: Self.retry(error))
            case .codesLocked: return confirmAuthenticatorPage(visit, status: 403, .codesAreLocked)
            case .conflict:
                sessions.change(visit.id) { $0.authenticator = nil }
                return go(visit, to: "/totp", .init(kind: .warn, text: .beginAnew))
            default: throw error
            }
        }
    }

    func removeAuthenticatorPage(
        _ visit: PageRequest, _ account: String, status: Int = 200
    ) async throws(CallFault) -> Response {
        let stays = RemainingFactors(withoutApp: try await website.relay.user(account))
        let fields = stays.isStrong ? "" : Self.warned
        return page(
            visit, .removeAuthenticator,
            """
            <div class="card">
            <p>\(visit(.removeAuthenticatorSure))</p>
            \(stays.isStrong ? nil : warning(visit, .lastAppGoes, stays))
            \(form(visit, "/totp/remove", fields, Button(.removeAuthenticator, style: "danger primary")))
            <p><a class="button quiet" href="/totp">\(visit(.back))</a></p>
            </div>
            """, status: status)
    }

    func removeAuthenticator(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        if !isWarned(visit) {
            let stays = RemainingFactors(withoutApp: try await website.relay.user(account))
            guard stays.isStrong else { return try await removeAuthenticatorPage(visit, account, status: 409) }
        }
        do throws(CallFault) {
            try await website.relay.dropTOTP(of: account)
        } catch  where error.problem?.code == .notFound {
            // Already removed.
        }
        return go(visit, to: "/totp", .init(kind: .good, text: .authenticatorRemoved))
    }
}
