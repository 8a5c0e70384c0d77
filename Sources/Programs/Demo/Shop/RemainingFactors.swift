import HTTP
import TwoefayClient

/// What somebody can still log in with once a phone or an app has gone.
struct RemainingFactors {
    let hasPhone: Bool
    private let codes: [RelayUser.OwnFactor]

    /// Of this user, but for that phone, or for the app.
    init(_ user: RelayUser, without device: String) {
        hasPhone = user.devices.contains { $0.state == .active && $0.id != device }
        codes = Self.codes(user)
    }

    init(withoutApp user: RelayUser) {
        hasPhone = user.devices.contains { $0.state == .active }
        codes = Self.codes(user).filter { $0.kind != .totp }
    }

    private static func codes(_ user: RelayUser) -> [RelayUser.OwnFactor] {
        user.factors.filter { ![.push, .pull].contains($0.kind) && $0.state != .waiting }
    }

    /// With something that the customer alone has, every day.
    var isStrong: Bool { hasPhone || codes.contains { [.totp, .hotp].contains($0.kind) } }
    var hasMessages: Bool { codes.contains { [.sms, .mail].contains($0.kind) } }

    var ways: [ShopText] {
        (hasPhone ? [.stayPhone] : [])
            + codes.compactMap { factor in
                switch factor.kind {
                case .totp: .stayApp
                case .hotp: .stayToken
                case .sms: .stayText(factor.address ?? "")
                case .mail: .stayMail(factor.address ?? "")
                case .recovery: .stayRecoveryCode
                default: nil
                }
            }
    }
}

/// Nobody loses the last phone, or the last good thing to log in with, by one press.
extension Shop {
    /// - Parameter loss: what is the last of its kind.
    func warning(_ visit: PageRequest, _ loss: ShopText, _ stays: RemainingFactors) -> HTML {
        let ways = stays.ways.map { way -> HTML in "<li>\(visit(way))</li>" }
        let left: HTML =
            ways.isEmpty
            ? "<p>\(visit(.nothingStays))</p>"
            : """
            <h2>\(visit(.whatStays))</h2>
            <ul>
            \(ways)
            </ul>
            """
        let thief: HTML = !stays.isStrong && stays.hasMessages ? "<p>\(visit(.messagesStay))</p>" : ""
        return """
            <p class="notice warn">\(visit(loss))</p>
            \(left)
            \(thief)
            """
    }

    /// Goes with the form that stands below the warning, and with no other.
    static let warned: HTML = #"<input type="hidden" name="last" value="yes">"#

    func isWarned(_ visit: PageRequest) -> Bool { visit.field("last") == "yes" }
}
