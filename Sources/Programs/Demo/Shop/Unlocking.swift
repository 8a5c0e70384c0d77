import HTTP
import TwoefayClient

/// Pages for a customer who is locked or frozen: the relay opens no challenge for this user. A
/// recovery code lifts the block.
///
/// The website could lift some locks without a code. It does not, because the visitor has proved
/// only a password.
extension Shop {
    /// Returns the customer whose password was entered correctly in this session.
    private func stopped(_ visit: PageRequest) -> String? {
        guard let question = visit.session.question, question.purpose == .login else { return nil }
        return question.account
    }

    func unlockPage(
        _ visit: PageRequest, status: Int = 200, _ fault: ShopText? = nil, fields: [Fields.Field] = []
    ) async throws(CallFault) -> Response {
        guard let account = stopped(visit) else { return goHome(visit) }
        let user = try await website.relay.user(account)
        guard user.state != .active || user.areCodesLocked else {
            return go(visit, to: "/login", .init(kind: .good, text: .unlocked))
        }
        let why: ShopText =
            switch user.stoppedBy {
            case nil: .codesAreLocked
            case "operator": .stoppedByOperator
            case "phone" where user.state == .frozen: .stoppedByFraud
            default: .stoppedByGuesses
            }
        return page(
            visit, .unlock,
            """
            <div class="card">
            <p>\(visit(why))</p>
            \(form(visit, "/unlock", recoveryCodeField(visit, fault: fault), Button(.unlock)))
            </div>
            <p class="muted">\(visit(.askOperator)) <code>twoefay user unlock \(account)</code></p>
            """, status: status, fields: fields)
    }

    func unlock(_ visit: PageRequest) async throws(CallFault) -> Response {
        guard let account = stopped(visit) else { return goHome(visit) }
        do throws(CallFault) {
            // With an empty code the website itself would request the unlock.
            let code = visit.field("code")
            guard !code.isEmpty, try await website.relay.unlock(account, recoveryCode: code) else {
                return try await unlockPage(visit, status: 422, .wrongRecoveryCode)
            }
            sessions.change(visit.id) { $0.question = nil }
            return go(visit, to: "/login", .init(kind: .good, text: .unlocked))
        } catch {
            switch error.problem?.code {
            // A user without recovery codes has no correct one.
            case .invalid, .conflict: return try await unlockPage(visit, status: 422, .wrongRecoveryCode)
            case .codesLocked: return try await unlockPage(visit, status: 403, .codesAreLocked)
            case .forbidden: return try await unlockPage(visit, status: 403, .stoppedByOperator)
            case .limited:
                return try await unlockPage(visit, status: 429, Self.patience(error), fields: Self.retry(error))
            default: throw error
            }
        }
    }
}
