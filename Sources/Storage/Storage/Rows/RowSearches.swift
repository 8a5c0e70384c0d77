import Domain
import Relay
import World

/// The searches with which scripts name the signed rows of websites and users. Phones and factors
/// are in `FactorSearches.swift`, challenges and outbox entries in `ChallengeSearches.swift`.
extension SignedRows {
    static func website(_ id: WebsiteID) -> SignedRows { websiteByID(website: .id(id)) }

    private static let websiteByID = RowSearch(.website, where: "{id = :website}")

    static func website(of token: UserToken) -> SignedRows { websiteOfToken(token: .id(token)) }

    private static let websiteOfToken = RowSearch(
        .website, where: "id = (SELECT u.website_id FROM user u WHERE u.token = :token)")

    static func website(named name: String) -> SignedRows { websiteByName(name: .text(name)) }

    private static let websiteByName = RowSearch(.website, where: "name = :name")

    static func website(of entry: OutboxEntryID) -> SignedRows { websiteOfEntry(entry: .id(entry)) }

    private static let websiteOfEntry = RowSearch(
        .website, where: "id = (SELECT u.website_id FROM outbox o JOIN user u ON u.id = o.user_id WHERE o.id = :entry)")

    static func websiteKey(_ thumbprint: [UInt8]) -> SignedRows { keyByThumbprint(thumbprint: .blob(thumbprint)) }

    private static let keyByThumbprint = RowSearch(.websiteKey, where: "thumbprint = :thumbprint")

    static func keys(of website: WebsiteID) -> SignedRows { keysByWebsite(website: .id(website)) }

    private static let keysByWebsite = RowSearch(.websiteKey, where: "website_id = :website")

    static func idempotency(_ website: WebsiteID, _ digest: [UInt8]) -> SignedRows {
        idempotencyByKey(website: .id(website), digest: .blob(digest))
    }

    private static let idempotencyByKey = RowSearch(.idempotency, where: "{website_id = :website AND digest = :digest}")
}

// MARK: Users

extension SignedRows {
    static func user(_ id: UserID) -> SignedRows { userByID(user: .id(id)) }

    private static let userByID = RowSearch(.user, where: "{id = :user}")

    static func user(_ token: UserToken) -> SignedRows { userByToken(token: .id(token)) }

    private static let userByToken = RowSearch(.user, where: "token = :token")

    static func user(named username: String, of website: WebsiteID) -> SignedRows {
        userByName(website: .id(website), username: .text(username))
    }

    private static let userByName = RowSearch(.user, where: "website_id = :website AND username = :username")

    static func user(named username: String, ofWebsite website: String) -> SignedRows {
        userByNames(website: .text(website), username: .text(username))
    }

    private static let userByNames = RowSearch(
        .user, where: "website_id = (SELECT w.id FROM website w WHERE w.name = :website) AND username = :username")

    static func user(of entry: OutboxEntryID) -> SignedRows { userOfEntry(entry: .id(entry)) }

    private static let userOfEntry = RowSearch(
        .user, where: "id = (SELECT o.user_id FROM outbox o WHERE o.id = :entry)")

    static func user(asked challenge: ChallengeID) -> SignedRows { userOfChallenge(challenge: .id(challenge)) }

    private static let userOfChallenge = RowSearch(
        .user, where: "id = (SELECT c.user_id FROM challenge c WHERE c.id = :challenge)")

    static func users(leased lease: OperationID) -> SignedRows { usersOfLease(lease: .id(lease)) }

    private static let usersOfLease = RowSearch(
        .user, where: "id IN (SELECT o.user_id FROM outbox o WHERE o.lease = :lease)")

    static func activation(_ digest: [UInt8]) -> SignedRows { activationByDigest(digest: .blob(digest)) }

    private static let activationByDigest = RowSearch(.activation, where: "digest = :digest")

    /// The user's activation codes that have not expired.
    static func activations(of user: UserID, at now: Timestamp) -> SignedRows {
        activationsOfUser(user: .id(user), now: .timestamp(now))
    }

    private static let activationsOfUser = RowSearch(.activation, where: "user_id = :user AND expires_at > :now")
}
