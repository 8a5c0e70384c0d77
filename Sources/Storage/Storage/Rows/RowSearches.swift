import Domain
import Relay
import World

/// The searches with which scripts name the signed rows that they rely on or write.
extension SignedRows {
    static func website(_ id: WebsiteID) -> SignedRows { SignedRows(websiteByID, .id(id)) }
    static func website(of token: UserToken) -> SignedRows { SignedRows(websiteOfToken, .id(token)) }
    static func website(named name: String) -> SignedRows { SignedRows(websiteByName, .text(name)) }
    static func website(calling thumbprint: [UInt8]) -> SignedRows { SignedRows(websiteOfDeviceKey, .blob(thumbprint)) }
    static func website(of errand: OutboxEntryID) -> SignedRows { SignedRows(websiteOfEntry, .id(errand)) }
    static func websiteKey(_ thumbprint: [UInt8]) -> SignedRows {
        SignedRows(websiteKeyByThumbprint, .blob(thumbprint))
    }

    static func user(_ id: UserID) -> SignedRows { SignedRows(userByID, .id(id)) }
    static func user(_ token: UserToken) -> SignedRows { SignedRows(userByToken, .id(token)) }
    static func user(named username: String, of website: WebsiteID) -> SignedRows {
        SignedRows(userByName, .id(website), .text(username))
    }
    static func user(named username: String, ofWebsite website: String) -> SignedRows {
        SignedRows(userByNames, .text(website), .text(username))
    }
    static func user(calling thumbprint: [UInt8]) -> SignedRows { SignedRows(userOfDeviceKey, .blob(thumbprint)) }
    static func user(of errand: OutboxEntryID) -> SignedRows { SignedRows(userOfEntry, .id(errand)) }
    static func user(asked challenge: ChallengeID) -> SignedRows { SignedRows(userOfChallenge, .id(challenge)) }
    static func users(claimed claim: OperationID) -> SignedRows { SignedRows(usersOfClaim, .id(claim)) }

    static func activation(_ digest: [UInt8]) -> SignedRows { SignedRows(activationByDigest, .blob(digest)) }

    static func device(_ id: DeviceID) -> SignedRows { SignedRows(deviceByID, .id(id)) }
    static func device(key thumbprint: [UInt8]) -> SignedRows { SignedRows(deviceByKey, .blob(thumbprint)) }
    static func devices(of user: UserID) -> SignedRows { SignedRows(devicesOfUser, .id(user)) }
    static func device(of errand: OutboxEntryID) -> SignedRows { SignedRows(deviceOfEntry, .id(errand)) }
    /// The phone that a push went to. The search finds it before and after the change that deletes
    /// the push's outbox entry.
    static func device(pushedTo errand: OutboxEntryID, settledBy operation: Operation) -> SignedRows {
        SignedRows(deviceOfSettled, .id(errand), .id(operation))
    }
    static func devices(claimed claim: OperationID) -> SignedRows { SignedRows(devicesOfClaim, .id(claim)) }

    static func factor(_ id: FactorID) -> SignedRows { SignedRows(factorByID, .id(id)) }
    static func factors(of user: UserID) -> SignedRows { SignedRows(factorsOfUser, .id(user)) }
    static func activeFactors(of user: UserID) -> SignedRows { SignedRows(activeFactorsOfUser, .id(user)) }
    static func factors(_ kind: Factor, of user: UserID) -> SignedRows {
        SignedRows(factorsOfKind, .id(user), .word(kind))
    }
    static func factor(of errand: OutboxEntryID) -> SignedRows { SignedRows(factorOfEntry, .id(errand)) }
    /// The factor with the address to which an account event is sent.
    static func address(of errand: OutboxEntryID) -> SignedRows { SignedRows(addressOfEntry, .id(errand), .id(errand)) }
    /// The codes that were sent to confirm an address of that kind.
    static func confirmingCodes(_ kind: Factor, of user: UserID) -> SignedRows {
        SignedRows(confirmingCodesOfKind, .id(user), .word(kind))
    }
    static func sentCode(of factor: FactorID, _ counter: Int64) -> SignedRows {
        SignedRows(sentCodeByKey, .id(factor), .integer(counter))
    }
    static func sentCodes(of factor: FactorID) -> SignedRows { SignedRows(sentCodesOfFactor, .id(factor)) }
    /// The codes that were sent for a challenge and have not expired.
    static func sentCodes(for challenge: ChallengeID, at now: Timestamp) -> SignedRows {
        SignedRows(sentCodesOfChallenge, .id(challenge), .timestamp(now))
    }
    static func recoveryCode(_ digest: [UInt8], of user: UserID) -> SignedRows {
        SignedRows(recoveryCodeByKey, .id(user), .blob(digest))
    }

    static func challenge(_ id: ChallengeID) -> SignedRows { SignedRows(challengeByID, .id(id)) }
    static func challenge(of errand: OutboxEntryID) -> SignedRows { SignedRows(challengeOfEntry, .id(errand)) }
    static func challenges(claimed claim: OperationID) -> SignedRows { SignedRows(challengesOfClaim, .id(claim)) }
    /// The challenges without a decision that have not expired.
    static func openChallenges(of user: UserID, at now: Timestamp) -> SignedRows {
        SignedRows(openChallengesOfUser, .id(user), .timestamp(now))
    }
    /// The challenges that are open or were decided at that moment. The search finds the same
    /// challenges before and after a change that ends them.
    static func endedChallenges(of user: UserID, at now: Timestamp) -> SignedRows {
        SignedRows(endedChallengesOfUser, .id(user), .timestamp(now))
    }
    /// The challenges with which the user approves a change, used or not.
    static func approvals(of user: UserID) -> SignedRows { SignedRows(approvalsOfUser, .id(user)) }

    static func idempotency(_ website: WebsiteID, _ digest: [UInt8]) -> SignedRows {
        SignedRows(idempotencyByKey, .id(website), .blob(digest))
    }

    static func entry<Thing>(_ id: Identifier<Thing>) -> SignedRows { SignedRows(entryByID, .id(id)) }
    static func entries(for challenge: ChallengeID) -> SignedRows { SignedRows(entriesOfChallenge, .id(challenge)) }
    static func entries(claimed claim: OperationID) -> SignedRows { SignedRows(entriesOfLease, .id(claim)) }
    /// The `login.decided` entry of a challenge that this change ended. The search finds nothing
    /// before the change.
    static func decided(_ challenge: ChallengeID, by operation: Operation) -> SignedRows {
        SignedRows(decidedByChallenge, .id(challenge), .id(operation))
    }
    /// The `login.decided` entries of the user's challenges that this change ended at that moment.
    static func decided(of user: UserID, at now: Timestamp, by operation: Operation) -> SignedRows {
        SignedRows(decidedOfUser, .id(user), .timestamp(now), .id(operation))
    }
}

private let websiteByID = RowSearch(.website, where: "id = ?")
private let websiteOfToken = RowSearch(.website, where: "id = (SELECT u.website_id FROM user u WHERE u.token = ?)")
private let websiteByName = RowSearch(.website, where: "name = ?")
private let websiteOfDeviceKey = RowSearch(
    .website, where: "id = (SELECT u.website_id FROM device d JOIN user u ON u.id = d.user_id WHERE d.thumbprint = ?)")
private let websiteOfEntry = RowSearch(
    .website, where: "id = (SELECT u.website_id FROM outbox o JOIN user u ON u.id = o.user_id WHERE o.id = ?)")
private let websiteKeyByThumbprint = RowSearch(.websiteKey, where: "thumbprint = ?")

private let userByID = RowSearch(.user, where: "id = ?")
private let userByToken = RowSearch(.user, where: "token = ?")
private let userByName = RowSearch(.user, where: "website_id = ? AND username = ?")
private let userByNames = RowSearch(
    .user, where: "website_id = (SELECT w.id FROM website w WHERE w.name = ?) AND username = ?")
private let userOfDeviceKey = RowSearch(.user, where: "id = (SELECT d.user_id FROM device d WHERE d.thumbprint = ?)")
private let userOfEntry = RowSearch(.user, where: "id = (SELECT o.user_id FROM outbox o WHERE o.id = ?)")
private let userOfChallenge = RowSearch(.user, where: "id = (SELECT c.user_id FROM challenge c WHERE c.id = ?)")
private let usersOfClaim = RowSearch(.user, where: "id IN (SELECT o.user_id FROM outbox o WHERE o.lease = ?)")

private let activationByDigest = RowSearch(.activation, where: "digest = ?")

private let deviceByID = RowSearch(.device, where: "id = ?")
private let deviceByKey = RowSearch(.device, where: "thumbprint = ?")
private let devicesOfUser = RowSearch(.device, where: "user_id = ?")
private let deviceOfEntry = RowSearch(.device, where: "id = (SELECT o.device_id FROM outbox o WHERE o.id = ?)")
private let deviceOfSettled = RowSearch(
    .device,
    where: """
        id = coalesce((SELECT o.device_id FROM outbox o WHERE o.id = ?),
        (SELECT a.device_id FROM audit a WHERE a.operation = ?))
        """)
private let devicesOfClaim = RowSearch(.device, where: "id IN (SELECT o.device_id FROM outbox o WHERE o.lease = ?)")

private let factorByID = RowSearch(.factor, where: "id = ?")
private let factorsOfUser = RowSearch(.factor, where: "user_id = ?")
private let activeFactorsOfUser = RowSearch(.factor, where: "user_id = ? AND state = 'active'")
private let factorsOfKind = RowSearch(.factor, where: "user_id = ? AND kind = ?")
private let factorOfEntry = RowSearch(.factor, where: "id = (SELECT o.factor_id FROM outbox o WHERE o.id = ?)")
private let addressOfEntry = RowSearch(
    .factor,
    where: """
        user_id = (SELECT o.user_id FROM outbox o WHERE o.id = ?)
        AND kind = (SELECT o.kind FROM outbox o WHERE o.id = ?) AND state = 'active'
        """)
private let confirmingCodesOfKind = RowSearch(
    .sentCode,
    where: "challenge_id IS NULL AND factor_id IN (SELECT f.id FROM factor f WHERE f.user_id = ? AND f.kind = ?)")
private let sentCodeByKey = RowSearch(.sentCode, where: "factor_id = ? AND counter = ?")
private let sentCodesOfFactor = RowSearch(.sentCode, where: "factor_id = ?")
private let sentCodesOfChallenge = RowSearch(.sentCode, where: "challenge_id = ? AND expires_at > ?")
private let recoveryCodeByKey = RowSearch(.recoveryCode, where: "user_id = ? AND digest = ?")

private let challengeByID = RowSearch(.challenge, where: "id = ?")
private let challengeOfEntry = RowSearch(
    .challenge, where: "id = (SELECT o.challenge_id FROM outbox o WHERE o.id = ?)")
private let challengesOfClaim = RowSearch(
    .challenge, where: "id IN (SELECT o.challenge_id FROM outbox o WHERE o.lease = ?)")
private let openChallengesOfUser = RowSearch(
    .challenge, where: "user_id = ? AND decided_at IS NULL AND expires_at > ?")
private let endedChallengesOfUser = RowSearch(
    .challenge, where: "user_id = ? AND (decided_at IS NULL OR decided_at = ?)")
private let approvalsOfUser = RowSearch(.challenge, where: "user_id = ? AND approves IS NOT NULL")

private let entryByID = RowSearch(.outbox, where: "id = ?")
private let entriesOfChallenge = RowSearch(.outbox, where: "challenge_id = ?")
private let entriesOfLease = RowSearch(.outbox, where: "lease = ?")

private let decidedByChallenge = RowSearch(
    .outbox, where: "id = (SELECT c.id FROM challenge c WHERE c.id = ? AND c.operation = ?)")
private let decidedOfUser = RowSearch(
    .outbox,
    where: "id IN (SELECT c.id FROM challenge c WHERE c.user_id = ? AND c.decided_at = ? AND c.operation = ?)")

private let idempotencyByKey = RowSearch(.idempotency, where: "website_id = ? AND digest = ?")
