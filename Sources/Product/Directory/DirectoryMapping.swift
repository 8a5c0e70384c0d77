import Domain

/// An entry as a source returns it: values by the names of attributes or columns.
public struct DirectoryEntry: Sendable {
    /// The DN, or the line of a file.
    public let name: String
    public let values: [String: [[UInt8]]]
    /// The attributes whose values exceed a limit and were not read.
    public let tooLong: [String]

    public init(name: String, values: [String: [[UInt8]]], tooLong: [String] = []) {
        self.name = name
        self.values = values
        self.tooLong = tooLong
    }
}

/// The attributes that contain the values of a user, and the rules by which values are read.
///
/// Every value comes from people who can edit the directory, perhaps each their own entry. So each
/// is bounded, must be UTF-8, and must pass the same rule as a value that a website sends. An entry
/// with a value that does not pass is left out as a whole: a user is never half updated.
public struct DirectoryMapping: Sendable, Equatable {
    public var id: String
    public var username: String
    public var email: String?
    public var phone: String?
    public var displayName: String?
    public var language: String?
    /// The prefix for numbers with a leading 0, such as `+49`; nil refuses such numbers.
    public var country: String?
    /// Whether usernames are converted to lower case.
    public var lowercases = false

    public init(
        id: String, username: String, email: String? = nil, phone: String? = nil, displayName: String? = nil,
        language: String? = nil
    ) {
        self.id = id
        self.username = username
        self.email = email
        self.phone = phone
        self.displayName = displayName
        self.language = language
    }

    /// The attributes of Active Directory.
    public static let activeDirectory = DirectoryMapping(
        id: "objectGUID", username: "sAMAccountName", email: "mail", phone: "mobile", displayName: "displayName",
        language: "preferredLanguage")

    /// The attributes of a standard directory (RFC 4530, RFC 2798).
    public static let standard = DirectoryMapping(
        id: "entryUUID", username: "uid", email: "mail", phone: "mobile", displayName: "displayName",
        language: "preferredLanguage")

    /// The columns of a CSV file.
    public static let columns = DirectoryMapping(
        id: "id", username: "username", email: "email", phone: "phone", displayName: "display_name",
        language: "language")

    /// All attributes that are read.
    public var attributes: [String] { [id, username] + [email, phone, displayName, language].compactMap(\.self) }

    public static let longestID = 64
}

/// The reason why an entry cannot be used, with its id if that can be read.
struct EntryFault: Error {
    let id: String?
    let message: String
}

extension DirectoryMapping {
    /// Returns the record of an entry.
    ///
    /// - Parameter policy: returns the policy of the entry with an id.
    func record(of entry: DirectoryEntry, policy: (String) -> String?) -> Result<DirectoryRecord, EntryFault> {
        var id: String?
        do throws(ValueFault) {
            let known = try identifier(of: entry)
            id = known
            guard let name = try text(username, of: entry, several: false) else {
                throw ValueFault(message: "\(username) is missing")
            }
            let called = lowercases ? name.lowercased() : name
            try check(username, called, FieldRule.username)
            let number = try text(phone, of: entry).map { Self.number($0, country: country) }
            return .success(
                DirectoryRecord(
                    id: known, username: called, email: try checked(email, of: entry, FieldRule.email),
                    phone: try number.map { number throws(ValueFault) in
                        try check(phone ?? "", number, FieldRule.phone)
                        return number
                    },
                    displayName: try checked(displayName, of: entry) { FieldRule.line($0, limit: 128) },
                    language: try checked(language, of: entry) { text in
                        text.utf8.count > 256 ? FieldRule.tooLong(256) : FieldRule.language(text)
                    },
                    policy: policy(known)))
        } catch {
            return .failure(EntryFault(id: id, message: error.message))
        }
    }

    /// Returns the id of an entry; nil if it cannot be read.
    public func id(of entry: DirectoryEntry) -> String? { try? identifier(of: entry) }

    private struct ValueFault: Error {
        let message: String
    }

    /// Returns the id. Active Directory's is binary, and is written as its tools write it.
    private func identifier(of entry: DirectoryEntry) throws(ValueFault) -> String {
        guard id.lowercased() == "objectguid" else {
            guard let text = try text(id, of: entry, several: false) else {
                throw ValueFault(message: "\(id) is missing")
            }
            guard FieldRule.line(text, limit: Self.longestID) == nil else {
                throw ValueFault(message: "\(id) must have at most \(Self.longestID) visible characters")
            }
            return text
        }
        let values = values(of: id, in: entry)
        guard values.count == 1, let bytes = values.first, bytes.count == 16 else {
            throw ValueFault(message: "\(id) must be one value of 16 bytes")
        }
        return Self.guid(bytes)
    }

    /// Returns the text of a GUID. Its first three parts are stored with their bytes reversed.
    static func guid(_ bytes: [UInt8]) -> String {
        let parts = [[3, 2, 1, 0], [5, 4], [7, 6], [8, 9], [10, 11, 12, 13, 14, 15]]
        let digits = Array("0123456789abcdef".utf8)
        return parts.map { part in
            String(
                decoding: part.flatMap { [digits[Int(bytes[$0] >> 4)], digits[Int(bytes[$0] & 15)]] }, as: UTF8.self)
        }.joined(separator: "-")
    }

    private func values(of attribute: String, in entry: DirectoryEntry) -> [[UInt8]] {
        (entry.values[attribute.lowercased()] ?? []).filter { !$0.isEmpty }
    }

    /// Returns the value of an attribute; nil if it is not mapped or has none. Of several values it
    /// returns the first in the order of their bytes, because a directory returns them in any
    /// order.
    private func text(
        _ attribute: String?, of entry: DirectoryEntry, several: Bool = true
    ) throws(ValueFault) -> String? {
        guard let attribute else { return nil }
        guard !entry.tooLong.contains(attribute.lowercased()) else {
            throw ValueFault(message: "\(attribute) is too long")
        }
        let values = values(of: attribute, in: entry)
        guard several || values.count <= 1 else {
            throw ValueFault(message: "\(attribute) has \(values.count) values, but must have one")
        }
        guard let first = values.min(by: { $0.lexicographicallyPrecedes($1) }) else { return nil }
        guard let text = String(validating: first, as: UTF8.self) else {
            throw ValueFault(message: "\(attribute) is not UTF-8 text")
        }
        return text
    }

    private func checked(
        _ attribute: String?, of entry: DirectoryEntry, _ rule: (String) -> LocalizedText?
    ) throws(ValueFault) -> String? {
        guard let attribute, let text = try text(attribute, of: entry) else { return nil }
        try check(attribute, text, rule)
        return text
    }

    private func check(_ attribute: String, _ text: String, _ rule: (String) -> LocalizedText?) throws(ValueFault) {
        guard let fault = rule(text) else { return }
        throw ValueFault(message: "\(attribute) \(fault)")
    }

    /// Returns a number in E.164 form if it can be read as one: without blanks and the signs that
    /// people write between digits, and with the country in place of a leading 0.
    static func number(_ text: String, country: String?) -> String {
        let signs = text.utf8.filter { !" ()-./".utf8.contains($0) }
        var digits = String(decoding: signs, as: UTF8.self)
        if digits.hasPrefix("00") {
            digits = "+" + digits.dropFirst(2)
        } else if digits.hasPrefix("0"), let country {
            digits = country + digits.dropFirst()
        }
        return digits
    }
}
