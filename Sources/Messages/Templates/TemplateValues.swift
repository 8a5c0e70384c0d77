import Bytes
import World

/// The values for the placeholders. Lines with an unknown value are left out.
public struct TemplateValues: Sendable {
    /// The name of the website as users know it.
    public var website: String
    public var code: Secret?
    /// The link that a phone or a browser opens; secret, because it contains a code.
    public var link: Secret?
    /// The validity of the code in minutes.
    public var minutes: Int?
    public var ip: String?
    public var place: String?
    public var service: String?
    public var device: String?
    public var time: Timestamp?
    public var lost: LostFactor?
    /// The link to the person's account; secret, because whoever has it can read the account.
    public var account: Secret?
    /// The name of the lost factor in the language of the mail.
    var lostName: String?

    public init(
        website: String, code: Secret? = nil, link: Secret? = nil, minutes: Int? = nil, ip: String? = nil,
        place: String? = nil, service: String? = nil, device: String? = nil, time: Timestamp? = nil,
        lost: LostFactor? = nil, account: Secret? = nil
    ) {
        self.account = account
        self.website = website
        self.code = code
        self.link = link
        self.minutes = minutes
        self.ip = ip
        self.place = place
        self.service = service
        self.device = device
        self.time = time
        self.lost = lost
    }

    /// Returns the remaining time in whole minutes, rounded down, so that the code lives at least
    /// as long as stated. Less than a minute counts as one.
    public static func minutes(left: Duration) -> Int {
        Int(min(max(1, left.components.seconds / 60), Int64(PluralRule.largest)))
    }

    /// The maximum length of a value.
    private static let characters = 128
    /// The maximum length of a link. A shortened link would be useless.
    private static let linkCharacters = 4096

    /// Returns the text of a placeholder as a single line; nil if it has no value.
    ///
    /// - Parameter nameCharacters: the maximum length of the website's name.
    func text(of placeholder: Placeholder, nameCharacters: Int) -> String? {
        let text: String? =
            switch placeholder {
            case .website: Self.cut(website, nameCharacters) ?? "?"
            case .code: code.map { String(decoding: $0.reveal(), as: UTF8.self) }
            case .link: link.map { String(decoding: $0.reveal(), as: UTF8.self) }
            case .account: account.map { String(decoding: $0.reveal(), as: UTF8.self) }
            case .minutes: minutes.map { String(PluralRule.bounded($0)) }
            case .ip: ip
            case .place: place
            case .service: service
            case .device: device
            case .time: time.map { Self.clock($0) }
            case .lost: lostName
            }
        let isLink = placeholder == .link || placeholder == .account
        return text.flatMap { Self.cut($0, isLink ? Self.linkCharacters : Self.characters) }
    }

    /// Formats a time as `2026-11-22 01:02 UTC`: the same in all languages, with an unambiguous
    /// order of day and month.
    private static func clock(_ time: Timestamp) -> String {
        let text = time.rfc3339
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
    }

    /// Returns the text without line breaks and without text-direction characters; nil if nothing
    /// is left.
    private static func cut(_ text: String, _ limit: Int) -> String? {
        var clean = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            // A line break becomes a space, and consecutive spaces are merged.
            let isGap = scalar == " " || isUnshowable(scalar)
            if isGap, clean.isEmpty || clean.last == " " { continue }
            clean.append(isGap ? " " : scalar)
        }
        if clean.last == " " { clean.removeLast() }
        guard !clean.isEmpty else { return nil }
        guard clean.count > limit else { return String(clean) }
        return String(String.UnicodeScalarView(clean.prefix(limit - 3))) + "..."
    }

    private static func isUnshowable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .surrogate, .unassigned, .privateUse, .lineSeparator, .paragraphSeparator: return true
        default: break
        }
        switch scalar.value {
        case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: return true
        default: return false
        }
    }
}
