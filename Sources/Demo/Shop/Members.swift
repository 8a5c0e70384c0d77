import HTTP
import TwoefayClient

/// What somebody sees who was let in, and an order that the phone has to sign.
extension Shop {
    func membersPage(_ visit: Visit, _ account: String) -> Response {
        let articles = Article.allCases.map { article -> HTML in
            """
            <li>
            <span>\(visit(article.name))<br><span class="muted">\(article.amount)</span></span>
            \(buy(visit, article))
            </li>
            """
        }
        return page(
            visit, .members,
            """
            <div class="card">
            <p>\(visit(.hello(account)))</p>
            <p class="muted">\(visit(Self.entrance(visit.session.entrance)))</p>
            </div>
            <h2>\(visit(.order))</h2>
            <div class="card">
            <p>\(visit(.orderHint))</p>
            <ul class="list">
            \(articles)
            </ul>
            </div>
            """)
    }

    private func buy(_ visit: Visit, _ article: Article) -> HTML {
        let what: HTML = #"<input type="hidden" name="article" value="\#(article.rawValue)">"#
        return form(visit, "/pay", what, Button(.pay(visit(article.name)), style: ""), style: "inline")
    }

    private static func entrance(_ entrance: Session.Entrance?) -> Words {
        switch entrance {
        case .phone: .cameByPhone
        case .code(.totp): .cameByApp
        case .code(.recovery): .cameByRecoveryCode
        case .code: .cameByCode
        case .signUp, nil: .cameBySignUp
        }
    }

    /// The prices are the website's own: a browser says what is bought, never what it costs.
    func pay(_ visit: Visit, _ account: String) async throws(CallFault) -> Response {
        guard let article = Article(rawValue: visit.field("article")) else { return go(visit, to: "/members") }
        try await website.pinPhones(of: account)
        guard !website.pinned(of: account).isEmpty else {
            return go(visit, to: "/phones", .init(kind: .warn, text: .payNeedsPhone))
        }
        let question = try await ask(
            LoginRequest(
                username: account, ip: visit.request.remote, userAgent: visit.browser, service: Self.name,
                action: visit(.payment),
                details: [
                    .init(label: visit(.article), value: visit(article.name)),
                    .init(label: "amount", value: article.amount),
                ], languages: visit.language.rawValue, factors: [.push]), for: .payment(article))
        sessions.change(visit.id) { $0.question = question }
        return go(visit, to: "/wait")
    }
}
