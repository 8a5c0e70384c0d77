import HTTP
import TwoefayClient

/// Pages for a login with a code: of an app or a token, from a mail or text message, or a recovery
/// code. The code belongs to the challenge that the phone could answer too.
extension Shop {
    func codePage(
        _ visit: PageRequest, status: Int = 200, _ fault: ShopText? = nil, fields: [Fields.Field] = []
    ) async throws(CallFault) -> Response {
        guard let question = visit.session.question, question.takesCodes else { return goHome(visit) }
        // If the relay cannot be reached, the page stays, with the options that do not need the
        // relay.
        let outcome = try await standing(of: question)
        guard outcome.map({ $0.login == .wait }) ?? true else { return go(visit, to: "/wait") }
        let factors = outcome == nil ? [] : try await website.relay.user(question.account).factors
        let senders: [HTML] = factors.compactMap { factor in
            // An addition requires the customer's strongest factor, and mail or SMS is never that.
            guard question.purpose == .login else { return nil }
            return switch factor.kind {
            case .sms: sender(visit, factor, .sendText(factor.address ?? ""))
            case .mail: sender(visit, factor, .sendMail(factor.address ?? ""))
            default: nil
            }
        }
        let code = field(
            visit, "code", .code,
            attributes: #"class="digits" autocomplete="one-time-code" inputmode="numeric" maxlength="64" required"#,
            hint: Self.source(factors, outcome), fault: fault)
        let number = question.number.map { number -> HTML in
            #"<p class="small muted">\#(visit(.orNumber(number)))</p>"#
        }
        return page(
            visit, .enterCode,
            """
            <div class="card">
            <p id="state" role="status" aria-live="polite">\(visit(Self.progress(outcome)))</p>
            \(form(visit, "/code", code, Button(.confirm)))
            \(number)
            </div>
            <h2>\(visit(.otherWays))</h2>
            <div class="row">
            \(senders)
            <a class="button" href="/recover">\(visit(.haveRecoveryCode))</a>
            \(form(visit, "/wait/cancel", "", Button(.cancel, style: "quiet"), style: "inline"))
            </div>
            """, status: status, awaits: "/wait/state?at=/code", fields: fields)
    }

    /// Returns a hint at an app or token that can produce a code at once, while the challenge still
    /// waits for the phone.
    private static func source(_ factors: [RelayUser.OwnFactor], _ outcome: LoginOutcome?) -> ShopText? {
        guard outcome?.factor == .push || outcome?.factor == .pull else { return nil }
        if factors.contains(where: { $0.kind == .totp }) { return .typeAppCode }
        return factors.contains { $0.kind == .hotp } ? .typeTokenCode : nil
    }

    private func sender(_ visit: PageRequest, _ factor: RelayUser.OwnFactor, _ text: ShopText) -> HTML {
        let kind: HTML = #"<input type="hidden" name="factor" value="\#(factor.kind.rawValue)">"#
        return form(visit, "/code/send", kind, Button(text, style: ""), style: "inline")
    }

    func recoveryCodePage(_ visit: PageRequest) -> Response {
        guard let question = visit.session.question, question.takesCodes else { return goHome(visit) }
        return page(
            visit, .enterRecoveryCode,
            """
            <div class="card">
            <p>\(visit(.recoveryCodeUse))</p>
            \(form(visit, "/code", recoveryCodeField(visit), Button(.confirm)))
            </div>
            <p><a class="button quiet" href="/code">\(visit(.back))</a></p>
            """)
    }

    func recoveryCodeField(_ visit: PageRequest, fault: ShopText? = nil) -> HTML {
        field(
            visit, "code", .recoveryCode,
            attributes: """
                type="text" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="64" required \
                placeholder="xxxx-xxxx-xxxx-xxxx"
                """, fault: fault)
    }

    func enterCode(_ visit: PageRequest) async throws(CallFault) -> Response {
        guard let question = visit.session.question, question.takesCodes else { return goHome(visit) }
        do throws(CallFault) {
            let outcome = try await website.relay.enter(code(of: visit), for: question.challenge)
            if outcome.isSuccess { return try await goOn(visit, question) }
            return try await codePage(visit, status: 422, .wrongCode)
        } catch {
            switch error.problem?.code {
            case .alreadyDecided: return go(visit, to: "/wait")
            case .invalid: return try await codePage(visit, status: 422, .codeRule)
            case .codesLocked: return try await codePage(visit, status: 403, .codesAreLocked)
            case .limited:
                return try await codePage(visit, status: 429, Self.patience(error), fields: Self.retry(error))
            default: throw error
            }
        }
    }

    /// Returns the entered code. People type digits in groups, but the relay accepts no spaces.
    func code(of visit: PageRequest) -> String {
        let text = visit.field("code")
        let digits = text.filter { $0 != " " }
        return digits.allSatisfy(\.isNumber) ? digits : text
    }

    func sendCode(_ visit: PageRequest) async throws(CallFault) -> Response {
        guard let question = visit.session.question, question.takesCodes else { return goHome(visit) }
        let factor: Factor = visit.field("factor") == Factor.sms.rawValue ? .sms : .mail
        do throws(CallFault) {
            try await website.relay.begin(factor, of: question.challenge)
            return go(visit, to: "/code")
        } catch {
            switch error.problem?.code {
            case .alreadyDecided: return go(visit, to: "/wait")
            case .forbidden, .conflict: return go(visit, to: "/code", .init(kind: .warn, text: .notThisWay))
            case .codesLocked: return go(visit, to: "/code", .init(kind: .warn, text: .codesAreLocked))
            case .limited: return go(visit, to: "/code", .init(kind: .warn, text: Self.patience(error)))
            default: throw error
            }
        }
    }

    /// Returns a text with the pause that the relay enforces after a wrong code.
    static func patience(_ fault: CallFault) -> ShopText { .waitSeconds(seconds(fault)) }

    static func retry(_ fault: CallFault) -> [Fields.Field] { [.init("retry-after", String(seconds(fault)))] }

    private static func seconds(_ fault: CallFault) -> Int64 { fault.problem?.retryAfter?.components.seconds ?? 5 }
}
