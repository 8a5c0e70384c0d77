import HTTP
import TwoefayClient

/// The factors that remain when a phone or an app is removed.
struct RemainingFactors {
    let hasPhone: Bool
    private let codes: [RelayUser.OwnFactor]

    /// Takes the user's factors without the given phone.
    init(_ user: RelayUser, without device: String) {
        hasPhone = user.devices.contains { $0.state == .active && $0.id != device }
        codes = Self.codes(user)
    }

    /// Takes the user's factors without the authenticator app.
    init(withoutApp user: RelayUser) {
        hasPhone = user.devices.contains { $0.state == .active }
        codes = Self.codes(user).filter { $0.kind != .totp }
    }

    private static func codes(_ user: RelayUser) -> [RelayUser.OwnFactor] {
        user.factors.filter { ![.push, .pull].contains($0.kind) && $0.state != .waiting }
    }

    /// Whether a phone, an app or a token remains. These are in the customer's possession and
    /// usable every day.
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

/// Warnings before the last phone or the last strong factor is removed. A removal without a warning
/// needs a second confirmation.
extension Shop {
    /// Returns a warning with the remaining factors.
    ///
    /// - Parameter loss: the text for the factor that is removed.
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

    /// The hidden field that only the form below the warning contains.
    static let warned: HTML = #"<input type="hidden" name="last" value="yes">"#

    func isWarned(_ visit: PageRequest) -> Bool { visit.field("last") == "yes" }
}
