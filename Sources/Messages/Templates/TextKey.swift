/// Mails that are sent. The raw value is the part of their keys that they share.
public enum MailTemplate: String, Sendable, CaseIterable {
    /// The code that lets somebody in.
    case loginCode = "mail.login"
    /// The code that shows that an address is the user's.
    case addressCode = "mail.address"
    case deviceBound = "mail.device.bound"
    case deviceUnbound = "mail.device.unbound"
    case userFrozen = "mail.user.frozen"
    case userLocked = "mail.user.locked"
    case codesLocked = "mail.codes.locked"
}

/// Text messages that are sent.
public enum SMSTemplate: String, Sendable, CaseIterable {
    case loginCode = "sms.login"
    case addressCode = "sms.address"
}

/// One text that a language has or has not: the `msgctxt` of an entry in its file.
enum TextKey: Hashable, Sendable {
    case subject(MailTemplate)
    case body(MailTemplate)
    case note(SMSTemplate)

    static let all: [TextKey] =
        MailTemplate.allCases.flatMap { [.subject($0), .body($0)] } + SMSTemplate.allCases.map { .note($0) }

    var name: String {
        switch self {
        case .subject(let letter): letter.rawValue + ".subject"
        case .body(let letter): letter.rawValue + ".text"
        case .note(let note): note.rawValue
        }
    }

    /// The other half, without which it says nothing.
    var partner: TextKey? {
        switch self {
        case .subject(let letter): .body(letter)
        case .body(let letter): .subject(letter)
        case .note: nil
        }
    }

    /// What it is there to say.
    var bringsCode: Bool {
        switch self {
        case .subject: false
        case .body(let letter): Self.codes.contains(letter)
        case .note: true
        }
    }

    var isOneLine: Bool {
        if case .body = self { false } else { true }
    }

    /// Longer is a mistake, or costs whoever pays for text messages.
    var characters: Int {
        switch self {
        case .subject: 200
        case .body: 8000
        case .note: 480
        }
    }

    var placeholders: [Placeholder] {
        switch self {
        // Mail servers write subjects into their logs.
        case .subject(let letter): Self.codes.contains(letter) ? Self.ofCodes.filter { $0 != .code } : Self.ofEvents
        case .body(let letter): Self.codes.contains(letter) ? Self.ofCodes : Self.ofEvents
        case .note: Self.ofCodes
        }
    }

    private static let codes: [MailTemplate] = [.loginCode, .addressCode]
    private static let ofCodes: [Placeholder] = [.website, .code, .minutes, .ip, .place, .service]
    private static let ofEvents: [Placeholder] = [.website, .device, .time]
}

/// What stands in a template for a value.
enum Placeholder: String, Sendable, CaseIterable {
    case website, code, minutes, ip, place, service, device, time

    /// Known whenever a text that may hold it is sent. The others may be missing, and their lines with them.
    var isAlwaysKnown: Bool {
        switch self {
        case .website, .code, .minutes, .time: true
        case .ip, .place, .service, .device: false
        }
    }
}
