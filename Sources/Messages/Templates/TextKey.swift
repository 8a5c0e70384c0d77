/// The mails that the relay sends. The raw value is the common prefix of their keys.
public enum MailTemplate: String, Sendable, CaseIterable {
    /// The code for a login.
    case loginCode = "mail.login"
    /// The code that confirms an address of the user.
    case addressCode = "mail.address"
    /// The code with which a user binds a phone, as a link and a QR code too.
    case activation = "mail.activation"
    case deviceBound = "mail.device.bound"
    case deviceUnbound = "mail.device.unbound"
    case secretDelivered = "mail.secret.delivered"
    case deviceCertified = "mail.device.certified"
    case userFrozen = "mail.user.frozen"
    case userLocked = "mail.user.locked"
    case codesLocked = "mail.codes.locked"
    case pinLocked = "mail.pin.locked"
    case pinChanged = "mail.pin.changed"
    case pukLocked = "mail.puk.locked"
    case unlockIssued = "mail.unlock.issued"
    case temporaryIssued = "mail.temporary.issued"
    case temporaryUsed = "mail.temporary.used"
    /// The link that begins the recovery of a lost factor.
    case recoveryLink = "mail.recovery.link"
    /// The announcement of a recovery, with the link that cancels it.
    case recoveryWaiting = "mail.recovery.waiting"
    case recoveryDone = "mail.recovery.done"
    case recoveryCancelled = "mail.recovery.cancelled"
}

/// The text messages that the relay sends.
public enum SMSTemplate: String, Sendable, CaseIterable {
    case loginCode = "sms.login"
    case addressCode = "sms.address"
}

/// A factor that a user can lose. The raw value is the key of its name in a mail.
public enum LostFactor: String, Sendable, CaseIterable {
    case app = "lost.totp"
    case token = "lost.hotp"
    case phones = "lost.push"
}

/// The key of one text: the `msgctxt` of its entry in a catalogue file.
enum TextKey: Hashable, Sendable {
    case subject(MailTemplate)
    case body(MailTemplate)
    case note(SMSTemplate)
    /// The name of a factor, which other texts insert.
    case name(LostFactor)

    static let all: [TextKey] =
        MailTemplate.allCases.flatMap { [.subject($0), .body($0)] } + SMSTemplate.allCases.map { .note($0) }
        + LostFactor.allCases.map { .name($0) }

    var name: String {
        switch self {
        case .subject(let letter): letter.rawValue + ".subject"
        case .body(let letter): letter.rawValue + ".text"
        case .note(let note): note.rawValue
        case .name(let factor): factor.rawValue
        }
    }

    /// The other half of a mail; a subject needs a body and a body a subject.
    var partner: TextKey? {
        switch self {
        case .subject(let letter): .body(letter)
        case .body(let letter): .subject(letter)
        case .note, .name: nil
        }
    }

    /// The placeholders that the text must contain.
    var required: [Placeholder] {
        switch self {
        case .subject, .name: []
        case .body(.activation): [.code, .link]
        case .body(.recoveryLink): [.link]
        case .body(.recoveryWaiting): [.link, .time]
        case .body(let letter): Self.codes.contains(letter) ? [.code] : []
        case .note: [.code]
        }
    }

    var isOneLine: Bool {
        if case .body = self { false } else { true }
    }

    /// The maximum length. A longer text is a mistake, or makes text messages expensive.
    var characters: Int {
        switch self {
        case .subject: 200
        case .body: 8000
        case .note: 480
        case .name: 60
        }
    }

    var placeholders: [Placeholder] {
        switch self {
        case .subject(.activation): [.website, .minutes]
        case .body(.activation): [.website, .code, .link, .minutes]
        case .subject(.recoveryLink): [.website, .minutes]
        case .body(.recoveryLink): [.website, .link, .minutes]
        case .subject(.recoveryWaiting): [.website, .time]
        case .body(.recoveryWaiting): [.website, .link, .time, .lost]
        case .name: []
        // Mail servers write subjects into their logs, so a subject has no code.
        case .subject(let letter): Self.codes.contains(letter) ? Self.ofCodes.filter { $0 != .code } : Self.ofEvents
        // The address may not be the user's yet.
        case .body(.addressCode): Self.ofCodes
        case .body(let letter): (Self.codes.contains(letter) ? Self.ofCodes : Self.ofEvents) + [.account]
        case .note: Self.ofCodes
        }
    }

    private static let codes: [MailTemplate] = [.loginCode, .addressCode]
    private static let ofCodes: [Placeholder] = [.website, .code, .minutes, .ip, .place, .service]
    private static let ofEvents: [Placeholder] = [.website, .device, .time]
}

/// A placeholder in a template.
enum Placeholder: String, Sendable, CaseIterable {
    case website, code, link, minutes, ip, place, service, device, time, lost, account

    /// Whether the value is known whenever the text is sent. The other values may be missing, and
    /// then their lines are left out.
    var isAlwaysKnown: Bool {
        switch self {
        case .website, .code, .link, .minutes, .time, .lost: true
        case .ip, .place, .service, .device, .account: false
        }
    }
}
