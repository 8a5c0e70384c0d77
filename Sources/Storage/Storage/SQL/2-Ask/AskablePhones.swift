import Relay

/// The phones with which a user can be asked: their columns, and how they are read.
enum AskablePhones {
    /// The columns of the alias `d`.
    static let columns =
        "SELECT d.id, d.push_token, d.environment, d.platform, d.public_key IS NOT NULL AS has_key FROM device d "
    static let order = " ORDER BY d.created_at, d.id"

    static func read(_ rows: Rows) throws(StoreFailure) -> [AskSubject.Phone] {
        var phones: [AskSubject.Phone] = []
        for row in rows {
            phones.append(
                AskSubject.Phone(
                    id: try row.id("id"), platform: try row.word("platform"),
                    pushToken: try row.pushToken("push_token"),
                    environment: try row.word("environment"), hasKey: try row.bool("has_key")))
        }
        return phones
    }
}
