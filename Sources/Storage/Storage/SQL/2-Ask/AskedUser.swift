import Domain
import Relay
import World

/// Reads the user whom a website wants to ask, by the user's token or name.
extension Store {
    public func subject(
        _ subject: Subject, of website: WebsiteID, within limits: AskLimits, key: IdempotentRequest?
    ) async throws(StoreFailure) -> AskSubject? {
        let statements = SubjectStatements(subject)
        let script = Script(
            "subject",
            reads: [
                statements.user(website: .id(website), subject: subject.value),
                statements.phones(website: .id(website), subject: subject.value),
                statements.codes(now: .timestamp(limits.now.roundedUp), website: .id(website), subject: subject.value),
                statements.blocker(
                    website: .id(website), subject: subject.value, known: .origin(limits.origin),
                    since: .timestamp(limits.since), others: .integer(Int64(limits.logins - 1))),
            ] + (key.map { [readKey(website: .id($0.website), digest: .blob($0.digest))] } ?? []))
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let user = rows[0].first else { return nil }
                var (codes, waiting): ([Factor], [Factor]) = ([], [])
                for row in rows[2] {
                    let (kind, state): (Factor, FactorState) = (try row.word("kind"), try row.word("state"))
                    if state == .active { codes.append(kind) } else { waiting.append(kind) }
                }
                return AskSubject(
                    user: try user.id("id"), username: try user.text("username"),
                    language: try user.optionalText("language"), policy: try user.optionalText("policy"),
                    phones: try AskablePhones.read(rows[1]), codes: codes,
                    areCodesLocked: try user.bool("are_codes_locked"),
                    enrolment: EnrolmentState(
                        isIdentityConfirmed: try user.bool("is_identity_confirmed"),
                        isProved: try user.bool("is_proved"), active: codes, waiting: waiting),
                    limitedBy: try rows[3].first?.timestamp("asked_at"),
                    isKeyUsed: rows.count > 4 && !rows[4].isEmpty)
            })
    }
}

/// Finds a used idempotency key. Its row is checked when the request is repeated.
private let readKey = Statement("SELECT 1 FROM idempotency WHERE {website_id = :website AND digest = :digest}")

extension Subject {
    fileprivate var value: SQLValue {
        switch self {
        case .token(let token): .id(token)
        case .username(let name): .text(name)
        }
    }
}

/// The statements for one kind of subject.
private struct SubjectStatements {
    let user: Statement
    let phones: Statement
    let codes: Statement
    let blocker: Statement

    init(_ subject: Subject) {
        switch subject {
        case .token: (user, phones, codes, blocker) = (userByToken, phonesByToken, codesByToken, blockerByToken)
        case .username: (user, phones, codes, blocker) = (userByName, phonesByName, codesByName, blockerByName)
        }
    }
}

/// The condition of one request.
private let ofToken = "{u.website_id = :website AND u.token = :subject}"
private let ofName = "{u.website_id = :website AND u.username = :subject}"

/// The user's row alone is checked. A phone's row is checked when the phone answers, and a factor's
/// row when a code is made with it. One row that is not genuine therefore does not prevent a login
/// with another factor.
private let userByToken = Statement(
    checking: [asked], userColumns, from: "\(SignedTable.user.checked(as: "u")) WHERE \(ofToken)")
private let userByName = Statement(
    checking: [asked], userColumns, from: "\(SignedTable.user.checked(as: "u")) WHERE \(ofName)")
private let asked = CheckedTable(.user, as: "u")
private let userColumns = [
    "u.language", "u.codes_locked_at IS NOT NULL AS are_codes_locked", "u.proved_at IS NOT NULL AS is_proved",
    "u.identity_confirmed_at IS NOT NULL AS is_identity_confirmed",
]

private let phonesByToken = Statement("\(phoneColumns) AND \(ofToken) \(AskablePhones.order)")
private let phonesByName = Statement("\(phoneColumns) AND \(ofName) \(AskablePhones.order)")
private let phoneColumns = "\(AskablePhones.columns) JOIN user u ON u.id = d.user_id WHERE d.state = 'active'"

private let codesByToken = Statement("\(codeColumns) AND \(ofToken)")
private let codesByName = Statement("\(codeColumns) AND \(ofName)")
/// Reads the active factors, and the addresses and recovery codes that wait for a code.
private let codeColumns = """
    SELECT f.kind, f.state FROM factor f JOIN user u ON u.id = f.user_id
    WHERE (\(CodeFactors.count) OR f.kind = 'recovery' OR f.kind IN ('mail', 'sms') AND f.address IS NOT NULL)
    """

private let blockerByToken = Statement("\(blockerColumns) AND u.token = :subject AND \(Blocker.window)")
private let blockerByName = Statement("\(blockerColumns) AND u.username = :subject AND \(Blocker.window)")
private let blockerColumns =
    "SELECT c.asked_at FROM user u JOIN challenge c ON c.user_id = u.id WHERE u.website_id = :website"

/// The challenge that has to leave the limit's time span before a user can be asked again.
enum Blocker {
    /// The oldest of the newest challenges `c` that fill the limit, among those from known browsers
    /// or among the others: the one behind `:others` newer ones. There is none while the limit is
    /// not reached.
    static let window = "c.known = :known AND c.asked_at > :since ORDER BY c.asked_at DESC LIMIT 1 OFFSET :others"
}
