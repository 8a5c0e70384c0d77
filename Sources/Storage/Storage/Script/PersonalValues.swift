import Bytes
import Crypto
import Relay

/// Personal values in the store: mail addresses, phone numbers, push tokens, and contexts and
/// receipts of logins.
///
/// Purpose: with the setting `seal: personal`, who reads the store or a copy of it learns none of
/// these values. The verbs do not know the setting: a statement binds a personal value, and the
/// store seals it before a session gets it. A row opens what it has, in whatever form.
///
/// Forms: a value is in the clear, or sealed under one of the installation's keys. A sealed text is
/// `sealed:KEY:` and the seal in base64url. A sealed context begins with a byte that no JSON text
/// begins with. Texts are sealed searchably, so SQL can compare, copy and constrain them. A
/// statement that compares a column with a parameter compares it with every form (`PersonalForms`).
///
/// Invariants:
/// - The seal names only the purpose of the value, not the row. So SQL can copy an address from the
///   user to an outbox entry. The MAC of the row binds the value to its row, in either form.
/// - A text that itself begins with `sealed:` is sealed under every setting. So nobody can make a
///   relay read a value that it received as a sealed one.
///
/// Failures: a value that cannot be opened stops its reader. It is reported as forged, or names the
/// key that is missing. `PersonalValueTests.swift` and `SealedStoreTests.swift` test it.
public struct PersonalSealer: Sendable {
    public let sealer: Sealer
    /// Whether personal values are written sealed.
    public let seals: Bool

    public init(_ sealer: Sealer, seals: Bool) {
        self.sealer = sealer
        self.seals = seals
    }

    static let marker = "sealed:"

    /// Returns the value in the form that this store writes.
    func written(_ content: PersonalValue.Content) throws(StoreFailure) -> SQLValue {
        do throws(CryptoFailure) {
            let associated = content.purpose.associated
            switch content {
            case .text(_, let text):
                guard !text.isEmpty, seals || text.hasPrefix(Self.marker) else { return .text(text) }
                return .text(Self.text(try sealer.sealSearchably(Array(text.utf8), associated: associated)))
            case .context(let bytes):
                return .blob(seals ? try sealer.seal(bytes, associated: associated) : bytes)
            }
        } catch {
            throw .internal("a personal value cannot be sealed: \(error)")
        }
    }

    /// Returns a text in all forms that the store may have it in.
    func forms(_ purpose: PersonalValue.Purpose, _ text: String) throws(StoreFailure) -> [SQLValue] {
        guard !text.isEmpty else { return [.text(text)] }
        do throws(CryptoFailure) {
            let seals = try sealer.searchableSeals(of: Array(text.utf8), associated: purpose.associated)
            return [.text(text)] + seals.map { .text(Self.text($0)) }
        } catch {
            throw .internal("a personal value cannot be sealed: \(error)")
        }
    }

    /// Returns a value of the store in the form that this store writes. A sealed value under the
    /// current key stays as it is. Throws if a value does not open.
    func rewritten(
        _ value: SQLValue, _ purpose: PersonalValue.Purpose, _ column: String
    ) throws(StoreFailure) -> SQLValue {
        switch value {
        case .text(let text):
            let plain = try opened(text, purpose, column)
            if seals, text.hasPrefix("\(Self.marker)\(sealer.currentID):") { return value }
            return try written(.text(purpose, plain))
        case .blob(let bytes):
            let plain = try opened(bytes, column)
            let isCurrent = bytes.starts(with: Sealer.beginning(underKey: sealer.currentID))
            return seals && isCurrent ? value : try written(.context(plain))
        case .null, .integer, .personal: return value
        }
    }

    /// Returns a value of a row for an operator: in the clear if it is a personal value that opens,
    /// otherwise as it is.
    public func shown(_ value: SQLValue) -> SQLValue {
        switch value {
        case .text(let text):
            for purpose in [PersonalValue.Purpose.address, .pushToken, .receipt] {
                if let opened = try? opened(text, purpose, "") { return .text(opened) }
            }
            return value
        case .blob(let bytes) where Self.isSealed(bytes):
            guard let context = try? open(bytes, .context, "") else { return value }
            return .text(String(decoding: context, as: UTF8.self))
        case .blob, .null, .integer, .personal: return value
        }
    }

    /// Opens a text of a column if it is sealed.
    func opened(_ text: String, _ purpose: PersonalValue.Purpose, _ column: String) throws(StoreFailure) -> String {
        guard text.hasPrefix(Self.marker) else { return text }
        guard let sealed = Self.sealed(text) else { throw .forged("\(column) of an unknown row") }
        let bytes = try open(sealed, purpose, column)
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .forged("\(column) of an unknown row") }
        return text
    }

    /// Opens a context if it is sealed.
    func opened(_ context: [UInt8], _ column: String) throws(StoreFailure) -> [UInt8] {
        Self.isSealed(context) ? try open(context, .context, column) : context
    }

    private func open(
        _ sealed: [UInt8], _ purpose: PersonalValue.Purpose, _ column: String
    ) throws(StoreFailure) -> [UInt8] {
        do throws(SealFailure) {
            return try sealer.open(sealed, associated: purpose.associated)
        } catch {
            if case .unknownKey(let id) = error {
                throw .internal("\(column) is sealed under the key \(id), which this program does not have")
            }
            throw .forged("\(column) of an unknown row")
        }
    }

    /// Whether a context is sealed. A context in the clear is a JSON object.
    static func isSealed(_ context: [UInt8]) -> Bool { (try? Sealer.keyID(of: context)) != nil }

    /// The text of a seal: the id of its key is readable, so that SQL can count the seals of a key.
    static func text(_ sealed: [UInt8]) -> String {
        let id = (try? Sealer.keyID(of: sealed)) ?? ""
        return marker + id + ":" + Base64URL.encode(sealed.dropFirst(Sealer.beginning(underKey: id).count))
    }

    /// Returns the seal of a text; nil if the text has another form.
    static func sealed(_ text: String) -> [UInt8]? {
        let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 3, (1...64).contains(parts[1].count), let rest = Base64URL.decode(Substring(parts[2]))
        else { return nil }
        return Sealer.beginning(underKey: String(Substring(parts[1]))) + rest
    }
}

/// A personal value of a statement, before the store resolves it.
public struct PersonalValue: Sendable, Hashable {
    enum Purpose: Sendable, Hashable {
        /// Mail addresses and phone numbers. They share one purpose, because the columns of factors
        /// and outbox entries have both.
        case address
        case pushToken
        /// The statements that phones signed. They name the phone's place and its number, and the
        /// digest of the context, by which a guess of the context could be tested.
        case receipt
        case context

        var associated: [UInt8] {
            switch self {
            case .address: Array("twoefay personal address".utf8)
            case .pushToken: Array("twoefay personal push token".utf8)
            case .receipt: Array("twoefay personal receipt".utf8)
            case .context: Array("twoefay personal context".utf8)
            }
        }
    }

    /// Texts are compared by their bytes, as those of `SQLValue` are.
    enum Content: Sendable, Hashable {
        case text(Purpose, String)
        case context([UInt8])

        static func == (a: Content, b: Content) -> Bool {
            switch (a, b) {
            case (.text(let purpose, let a), .text(let other, let b)): purpose == other && a.utf8.elementsEqual(b.utf8)
            case (.context(let a), .context(let b)): a == b
            case (.text, _), (.context, _): false
            }
        }

        func hash(into hasher: inout Hasher) {
            switch self {
            case .text(let purpose, let text):
                hasher.combine(purpose)
                hasher.combine(text.utf8)
            case .context(let bytes): hasher.combine(bytes)
            }
        }

        var purpose: Purpose {
            if case .text(let purpose, _) = self { purpose } else { .context }
        }

        var plain: SQLValue {
            switch self {
            case .text(_, let text): .text(text)
            case .context(let bytes): .blob(bytes)
            }
        }
    }

    let content: Content
    /// The number of the form that a comparison needs; nil for a value that is written.
    let form: Int?
}

/// The comparison of a personal column with a parameter in every form.
enum PersonalForms {
    /// The most forms that a value can have: in the clear, and under each key of a master key file.
    static let most = 17

    /// The condition that an expression equals the list `name`.
    static func equal(_ expression: String, _ name: String) -> String {
        "\(expression) IN (\((1...most).map { ":\(name)\($0)" }.joined(separator: ", ")))"
    }

    /// The condition that an expression equals no form of the list `name`.
    static func differ(_ expression: String, _ name: String) -> String { "NOT \(equal(expression, name))" }
}

extension SQLValue {
    static func address(_ text: String?) -> SQLValue { personal(.address, text) }
    static func pushToken(_ text: String?) -> SQLValue { personal(.pushToken, text) }
    static func receipt(_ text: String?) -> SQLValue { personal(.receipt, text) }
    static func context(_ bytes: [UInt8]) -> SQLValue {
        .personal(PersonalValue(content: .context(bytes), form: nil))
    }

    private static func personal(_ purpose: PersonalValue.Purpose, _ text: String?) -> SQLValue {
        text.map { .personal(PersonalValue(content: .text(purpose, $0), form: nil)) } ?? .null
    }
}

extension [SQLValue] {
    /// All forms of an address, for `PersonalForms.equal`. No address equals the empty text.
    static func forms(ofAddress text: String?) -> [SQLValue] { forms(.address, text ?? "") }
    static func forms(ofPushToken text: String) -> [SQLValue] { forms(.pushToken, text) }

    private static func forms(_ purpose: PersonalValue.Purpose, _ text: String) -> [SQLValue] {
        (0..<PersonalForms.most).map { .personal(PersonalValue(content: .text(purpose, text), form: $0)) }
    }
}

extension Row {
    func address(_ column: SQLName) throws(StoreFailure) -> String { try personal(.address, column) }

    func optionalAddress(_ column: SQLName) throws(StoreFailure) -> String? {
        try isNull(column) ? nil : address(column)
    }

    func pushToken(_ column: SQLName) throws(StoreFailure) -> String { try personal(.pushToken, column) }

    func optionalReceipt(_ column: SQLName) throws(StoreFailure) -> String? {
        try isNull(column) ? nil : personal(.receipt, column)
    }

    func context(_ column: SQLName) throws(StoreFailure) -> [UInt8] {
        let bytes = try blob(column)
        guard let personal else {
            guard !PersonalSealer.isSealed(bytes) else { throw unreadable(column) }
            return bytes
        }
        return try personal.opened(bytes, column.description)
    }

    func optionalContext(_ column: SQLName) throws(StoreFailure) -> [UInt8]? {
        try isNull(column) ? nil : context(column)
    }

    private func personal(_ purpose: PersonalValue.Purpose, _ column: SQLName) throws(StoreFailure) -> String {
        let text = try text(column)
        guard let personal else {
            guard !text.hasPrefix(PersonalSealer.marker) else { throw unreadable(column) }
            return text
        }
        return try personal.opened(text, purpose, column.description)
    }

    /// Reads an address for a caller who must not be stopped by a value that does not open: an
    /// operator, or whoever stops a phone or a user. Such a value is returned as it is, and begins
    /// with `sealed:`. No address in the clear does.
    func shownAddress(_ column: SQLName) throws(StoreFailure) -> String { try shown(.address, column) }

    func optionalShownAddress(_ column: SQLName) throws(StoreFailure) -> String? {
        try isNull(column) ? nil : shown(.address, column)
    }

    /// Reads a push token as `shownAddress` reads an address.
    func shownPushToken(_ column: SQLName) throws(StoreFailure) -> String { try shown(.pushToken, column) }

    private func shown(_ purpose: PersonalValue.Purpose, _ column: SQLName) throws(StoreFailure) -> String {
        let text = try text(column)
        return (try? personal?.opened(text, purpose, column.description)) ?? text
    }

    private func unreadable(_ column: SQLName) -> StoreFailure {
        .internal("\(column) is sealed, and this program cannot read the master key")
    }
}

extension Rows {
    func opened(by personal: PersonalSealer?) -> Rows {
        var rows = self
        rows.personal = personal
        return rows
    }
}

extension Script {
    /// Returns the script with its personal values in the form that sessions get.
    func resolved(by personal: PersonalSealer?) throws(StoreFailure) -> Script {
        if let short {
            let form = ShortForm(
                subjects: short.subjects, rows: short.rows, reads: short.reads, decide: short.decide,
                guarded: { () throws(StoreFailure) in try short.guarded().resolved(by: personal) })
            return Script(name, operation: operation, mayHaveRun: mayHaveRun, short: form)
        }
        guard (writes + reads).contains(where: \.hasPersonalValues) else { return self }
        var forms: [PersonalValue.Content: [SQLValue]] = [:]
        var resolvedWrites: [BoundStatement] = []
        for write in writes { resolvedWrites.append(try write.resolved(by: personal, &forms)) }
        var resolvedReads: [BoundStatement] = []
        for read in reads { resolvedReads.append(try read.resolved(by: personal, &forms)) }
        return Script(
            name, operation: operation, mayHaveRun: mayHaveRun, rows: rows, writes: resolvedWrites,
            reads: resolvedReads, reporting: reported)
    }
}

extension BoundStatement {
    fileprivate var hasPersonalValues: Bool {
        values.contains { if case .personal = $0 { true } else { false } }
    }

    /// - Parameter forms: the forms of the values that were resolved before.
    fileprivate func resolved(
        by personal: PersonalSealer?, _ forms: inout [PersonalValue.Content: [SQLValue]]
    ) throws(StoreFailure) -> BoundStatement {
        guard hasPersonalValues else { return self }
        var resolved: [SQLValue] = []
        resolved.reserveCapacity(values.count)
        for value in values {
            guard case .personal(let value) = value else {
                resolved.append(value)
                continue
            }
            guard let personal else {
                resolved.append(value.content.plain)
                continue
            }
            guard let form = value.form else {
                resolved.append(try personal.written(value.content))
                continue
            }
            if forms[value.content] == nil, case .text(let purpose, let text) = value.content {
                forms[value.content] = try personal.forms(purpose, text)
            }
            let all = forms[value.content] ?? []
            // There are more parameters than keys: the first form fills the others.
            resolved.append(form < all.count ? all[form] : value.content.plain)
        }
        return BoundStatement(statement, values: resolved, words: words)
    }
}
