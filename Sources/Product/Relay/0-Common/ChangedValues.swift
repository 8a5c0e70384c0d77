import Domain
import JSON
import World

/// The values that a change replaces, each before and after, for the audit.
///
/// The values before are those that the change was made for. Another change may come between, whose own
/// row in the audit has its values.
public struct ChangedValues: Sendable {
    private var changed = JSONObject()

    public init() {}

    /// The state that an unlock lifts.
    public init(unlocking state: UserState) {
        note("state", .string(state.rawValue), .string(UserState.active.rawValue))
    }

    public mutating func note(_ name: String, _ before: JSONValue, _ after: JSONValue) {
        if before != after { changed.set(name, .object(["before": before, "after": after])) }
    }

    /// JSON that names each changed value; nil if there is none.
    public var text: String? { changed.names.isEmpty ? nil : JSONWriter.text(.object(changed)) }
}

extension UserChange {
    /// Returns the values that the change replaces. A new address counts once a code has confirmed it.
    func replaced(in user: UserRow) -> ChangedValues {
        var values = ChangedValues()
        if let displayName { values.note("display_name", .text(user.displayName), .text(displayName)) }
        if let language { values.note("language", .text(user.language), .text(language)) }
        if let email = addresses[.mail] { values.note("email", .text(user.email), .text(email)) }
        if let phone = addresses[.sms] { values.note("phone", .text(user.phone), .text(phone)) }
        if let expiresAt { values.note("expires_at", .text(user.expiresAt?.rfc3339), .text(expiresAt?.rfc3339)) }
        return values
    }
}
