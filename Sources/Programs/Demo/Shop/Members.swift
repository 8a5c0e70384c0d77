import HTTP
import TwoefayClient

/// The page for logged-in customers.
extension Shop {
    func membersPage(_ visit: PageRequest, _ account: String) -> Response {
        page(
            visit, .members,
            """
            <div class="card">
            <p>\(visit(.hello(account)))</p>
            <p class="muted">\(visit(Self.entrance(visit.session.entrance)))</p>
            </div>
            \(orders(visit, account))
            """)
    }

    private static func entrance(_ entrance: Session.LoginMethod?) -> ShopText {
        switch entrance {
        case .phone: .cameByPhone
        case .code(.totp): .cameByApp
        case .code(.recovery): .cameByRecoveryCode
        case .code: .cameByCode
        case .signUp, nil: .cameBySignUp
        }
    }
}
