import Relay
import Storage
import World

/// A script with the size and shape of the one that stores a challenge, on separate tables beside
/// the relay's.
struct AskLike: Sendable {
    static let users = 1000

    private let clock = SystemTime()
    private let chance = SystemRandomness()
    private let website: [UInt8]
    private let relay: [UInt8]
    private let user: [[UInt8]]
    private let device: [[UInt8]]
    private let context = Array(#"{"service":"login","place":"Berlin","ip":"192.0.2.7","browser":"Firefox"}"#.utf8)

    init() {
        let chance = chance
        website = chance.bytes(16)
        relay = chance.bytes(16)
        user = (0..<Self.users).map { _ in chance.bytes(16) }
        device = (0..<Self.users).map { _ in chance.bytes(16) }
    }

    /// Creates the tables, and adds the website, the users and their phones.
    func fill(_ store: Store) throws {
        for table in tables { _ = try store.runBlocking(Script("tables", writes: [table()])) }
        let now = SQLValue.timestamp(clock.now())
        let operation = SQLValue.blob(chance.bytes(16))
        _ = try store.runBlocking(
            Script("fill", writes: [insertWebsite(website: .blob(website), name: .text(hex(website)), now: now, operation: operation)]))
        for start in stride(from: 0, to: Self.users, by: 50) {
            var writes: [BoundStatement] = []
            for index in start..<start + 50 {
                writes.append(
                    insertUser(
                        user: .blob(user[index]), website: .blob(website), username: .text("user\(index)"), now: now,
                        operation: operation))
                writes.append(
                    insertDevice(
                        device: .blob(device[index]), user: .blob(user[index]), now: now, operation: operation))
            }
            _ = try store.runBlocking(Script("fill", writes: writes))
        }
    }

    /// Returns a script for one user. Scripts in flight concern different users, as in real use.
    func script(_ number: Int) -> Script {
        let index = number % Self.users
        let now = clock.now()
        let moment = SQLValue.timestamp(now)
        let expiry = SQLValue.timestamp(now + .seconds(60))
        let id = chance.bytes(16)
        let operation = SQLValue.blob(id)
        let challenge = SQLValue.blob(chance.bytes(16))
        let owner = SQLValue.blob(user[index])
        return Script(
            "ask", operation: id,
            writes: [
                markUser(challenge: challenge, operation: operation, user: owner, website: .blob(website)),
                supersede(now: moment, operation: operation, user: owner),
                dropEntries(user: owner, operation: operation),
                insertChallenge(
                    challenge: challenge, policy: .text(#"{"number":"two"}"#), context: .blob(context),
                    nonce: .blob(chance.bytes(16)), number: .text("42"), now: moment, expiresAt: expiry,
                    operation: operation, user: owner),
                insertStep(challenge: challenge, now: moment, user: owner, operation: operation),
                insertPush(
                    entry: .blob(chance.bytes(16)), challenge: challenge, now: moment, relay: .blob(relay),
                    device: .blob(device[index]), user: owner, operation: operation),
                insertExpiry(
                    entry: .blob(chance.bytes(16)), challenge: challenge, expiresAt: expiry, user: owner,
                    operation: operation),
                audit(operation: operation, now: moment, challenge: challenge, user: owner),
            ],
            reads: [happened(operation: operation), end(challenge: challenge)])
    }

    /// Returns a script that reads one row by its key.
    func read(_ number: Int) -> Script {
        Script("user", reads: [userByID(website: .blob(website), user: .blob(user[number % Self.users]))])
    }

    private func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}

private let inno = " /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */"
private let tables =
    [
        """
        CREATE TABLE IF NOT EXISTS b_website (
            id binary(16) NOT NULL PRIMARY KEY, name varchar(64) NOT NULL, display_name varchar(128) NOT NULL,
            state varchar(16) NOT NULL, policy text NOT NULL, created_at datetime(3) NOT NULL, operation binary(16) NOT NULL,
            UNIQUE (name))
        """,
        """
        CREATE TABLE IF NOT EXISTS b_user (
            id binary(16) NOT NULL PRIMARY KEY, website_id binary(16) NOT NULL, username varchar(64) NOT NULL,
            email varchar(254), phone varchar(16), display_name varchar(128), challenge_id binary(16),
            created_at datetime(3) NOT NULL, operation binary(16) NOT NULL,
            UNIQUE (website_id, username), UNIQUE (website_id, email), UNIQUE (website_id, phone))
        """,
        """
        CREATE TABLE IF NOT EXISTS b_device (
            id binary(16) NOT NULL PRIMARY KEY, user_id binary(16) NOT NULL, state varchar(16) NOT NULL,
            platform varchar(16) NOT NULL, environment varchar(16) NOT NULL, push_token varchar(2048) NOT NULL,
            push_token_at datetime(3) NOT NULL, created_at datetime(3) NOT NULL, operation binary(16) NOT NULL)
        """,
        """
        CREATE TABLE IF NOT EXISTS b_challenge (
            id binary(16) NOT NULL PRIMARY KEY, website_id binary(16) NOT NULL, user_id binary(16) NOT NULL,
            state varchar(16) NOT NULL, reason varchar(16), policy text NOT NULL, context blob NOT NULL,
            nonce binary(16) NOT NULL, number varchar(6), factor varchar(16), guesses int NOT NULL,
            asked_at datetime(3) NOT NULL, expires_at datetime(3) NOT NULL, decided_at datetime(3),
            operation binary(16) NOT NULL)
        """,
        """
        CREATE TABLE IF NOT EXISTS b_step (
            challenge_id binary(16) NOT NULL, ordinal int NOT NULL, factor varchar(16) NOT NULL,
            state varchar(16) NOT NULL, at datetime(3) NOT NULL, PRIMARY KEY (challenge_id, ordinal))
        """,
        """
        CREATE TABLE IF NOT EXISTS b_outbox (
            id binary(16) NOT NULL PRIMARY KEY, kind varchar(16) NOT NULL, challenge_id binary(16) NOT NULL,
            device_id binary(16), due_at datetime(3) NOT NULL, attempts int NOT NULL, holder binary(16))
        """,
        """
        CREATE TABLE IF NOT EXISTS b_audit (
            id /*M! bigint NOT NULL AUTO_INCREMENT */ /*S! INTEGER */ PRIMARY KEY, operation binary(16) NOT NULL,
            at datetime(3) NOT NULL, event varchar(32) NOT NULL, website_id binary(16), user_id binary(16),
            challenge_id binary(16), UNIQUE (operation))
        """,
    ].map { Statement($0 + inno) } + [
        Statement("CREATE INDEX IF NOT EXISTS b_challenge_user ON b_challenge (user_id, decided_at)"),
        Statement("CREATE INDEX IF NOT EXISTS b_outbox_due ON b_outbox (due_at)"),
        Statement("CREATE INDEX IF NOT EXISTS b_outbox_challenge ON b_outbox (challenge_id)"),
    ]

private let insertWebsite = Statement(
    """
    INSERT INTO b_website (id, name, display_name, state, policy, created_at, operation)
    VALUES (:website, :name, 'Benchmark', 'active', '{}', :now, :operation)
    """)
private let insertUser = Statement(
    """
    INSERT INTO b_user (id, website_id, username, created_at, operation)
    VALUES (:user, :website, :username, :now, :operation)
    """)
private let insertDevice = Statement(
    """
    INSERT INTO b_device (id, user_id, state, platform, environment, push_token, push_token_at, created_at, operation)
    VALUES (:device, :user, 'active', 'ios', 'production', 'push-token', :now, :now, :operation)
    """)

private let markUser = Statement(
    """
    UPDATE b_user SET challenge_id = :challenge, operation = :operation WHERE id = :user AND website_id = :website
    AND EXISTS (SELECT 1 FROM b_website w WHERE w.id = b_user.website_id AND w.state = 'active')
    """)
private let supersede = Statement(
    """
    UPDATE b_challenge SET state = 'cancelled', reason = 'superseded', decided_at = :now, operation = :operation
    WHERE user_id = :user AND decided_at IS NULL AND EXISTS (SELECT 1 \(ofMarkedUser))
    """)
private let dropEntries = Statement(
    """
    DELETE FROM b_outbox WHERE challenge_id =
    (SELECT c.id FROM b_challenge c WHERE c.user_id = :user AND c.operation = :operation AND c.reason = 'superseded')
    """)
private let insertChallenge = Statement(
    """
    INSERT INTO b_challenge
    (id, state, policy, context, nonce, number, factor, asked_at, expires_at, operation, guesses, website_id, user_id)
    SELECT :challenge, 'asked', :policy, :context, :nonce, :number, 'push', :now, :expiresAt, :operation, 0, u.website_id,
    u.id \(ofMarkedUser)
    """)
private let insertStep = Statement(
    """
    INSERT INTO b_step (challenge_id, ordinal, factor, state, at)
    SELECT :challenge, 1, 'push', 'begun', :now \(ofMarkedUser)
    """)
private let insertPush = Statement(
    """
    INSERT INTO b_outbox (id, kind, challenge_id, due_at, attempts, holder, device_id)
    SELECT :entry, 'push', :challenge, :now, 0, :relay, d.id FROM b_device d WHERE d.id = :device AND d.state = 'active'
    AND EXISTS (SELECT 1 \(ofMarkedUser))
    """)
private let insertExpiry = Statement(
    """
    INSERT INTO b_outbox (id, kind, challenge_id, due_at, attempts)
    SELECT :entry, 'expiry', :challenge, :expiresAt, 0 \(ofMarkedUser)
    """)
private let audit = Statement(
    """
    INSERT INTO b_audit (operation, at, event, website_id, user_id, challenge_id)
    SELECT :operation, :now, 'challenge.asked', u.website_id, u.id, :challenge \(ofMarkedUser)
    """)
private let happened = Statement("SELECT 1 FROM b_audit WHERE operation = :operation")
private let end = Statement("SELECT expires_at FROM b_challenge WHERE id = :challenge")
private let userByID = Statement(
    """
    SELECT id, username, email, phone, display_name, challenge_id FROM b_user WHERE website_id = :website AND id = :user
    """)

private let ofMarkedUser = "FROM b_user u WHERE u.id = :user AND u.operation = :operation"
