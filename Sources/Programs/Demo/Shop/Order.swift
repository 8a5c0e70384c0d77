import HTTP
import TwoefayClient

/// An order that the phone must sign. Article and price are part of the challenge, so the phone's
/// signature covers them. A code is not accepted, because it does not show what it approves.
extension Shop {
    func orders(_ visit: PageRequest, _ account: String) -> HTML {
        let articles = Article.allCases.map { article -> HTML in
            """
            <li>
            <span>\(visit(article.name))<br><span class="muted">\(article.amount)</span></span>
            \(buy(visit, article))
            </li>
            """
        }
        return """
            <h2>\(visit(.order))</h2>
            <div class="card">
            <p>\(visit(.orderHint))</p>
            <ul class="list">
            \(articles)
            </ul>
            </div>
            \(earlierOrders(visit, account))
            """
    }

    private func earlierOrders(_ visit: PageRequest, _ account: String) -> HTML? {
        let all = (customers.find(account)?.orders ?? []).reversed().map { article -> HTML in
            "<li>\(visit(article.name)), \(article.amount)</li>"
        }
        guard !all.isEmpty else { return nil }
        return """
            <h2>\(visit(.yourOrders))</h2>
            <ul class="card" id="orders">
            \(all)
            </ul>
            """
    }

    private func buy(_ visit: PageRequest, _ article: Article) -> HTML {
        let what: HTML = #"<input type="hidden" name="article" value="\#(article.rawValue)">"#
        return form(visit, "/pay", what, Button(.pay(visit(article.name)), style: ""), style: "inline")
    }

    /// Starts a payment. The browser names the article, but the price always comes from the
    /// website.
    func pay(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
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
                ], languages: visit.language.rawValue,
                chosenLanguage: visit.session.language?.rawValue, factors: [.push],
                isKnown: isKnown(visit, as: account)), for: .payment(article))
        sessions.change(visit.id) { $0.question = question }
        return go(visit, to: "/wait")
    }

    /// Reports a paid order. The order was already stored when the phone's signature arrived, see
    /// `ask`.
    func paid(_ visit: PageRequest, _ article: Article) -> Response {
        go(visit, to: "/members", .init(kind: .good, text: .paid(visit(article.name), article.amount)))
    }
}

/// An article of the shop.
enum Article: String, Sendable, CaseIterable {
    case tea, kettle, samovar

    /// The amount in the form that the relay reads for the policy `number-below`.
    var amount: String {
        switch self {
        case .tea: "4.50 EUR"
        case .kettle: "38.00 EUR"
        case .samovar: "249.00 EUR"
        }
    }

    var name: ShopText {
        switch self {
        case .tea: .tea
        case .kettle: .kettle
        case .samovar: .samovar
        }
    }
}
