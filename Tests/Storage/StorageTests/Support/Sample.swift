import Bytes
import Crypto
import Domain
import GSM
import World

@testable import Relay
@testable import Storage

/// Four hundred users with all their data, and calls of every store function for them.
enum Sample {
    static let count = 400
    static let now = Timestamp(seconds: 1_800_000_000)
    static let later = now + .seconds(300)

    /// Returns an id; the same number gives the same id.
    static func id<Thing>(_ number: Int) -> Identifier<Thing> {
        guard let id = Identifier<Thing>([UInt8](repeating: 0, count: 8) + bytes(number)) else { fatalError() }
        return id
    }

    private static func bytes(_ number: Int) -> [UInt8] { (0..<8).map { UInt8(number >> (56 - $0 * 8) & 0xff) } }
    static func key(_ number: Int) -> [UInt8] { SHA256.hash(bytes(number)) }

    static let website: WebsiteID = id(1)
    static let relay: RelayID = id(1)
    static let limits = AskLimits(since: now - .seconds(300), logins: 20, pushes: 5)

    static func fill(_ store: Store, at url: StorageURL, users: Int = count) async throws {
        var steps = [
            insertWebsite(website: .id(website), now: .timestamp(now), operation: .id(website)),
            insertKey(thumbprint: .blob(key(1)), website: .id(website), now: .timestamp(now)),
            insertRelay(relay: .id(relay), now: .timestamp(now)),
        ]
        for number in 1...users { steps += rows(number) }
        steps += oldRows
        _ = try await store.run(Script("fill", writes: steps))
        try url.analyze(
            """
            user, device, attestation, factor, challenge, step, outbox, activation, audit, idempotency, sent_code,
            recovery_code, certificate, recovery
            """)
    }

    private static let insertWebsite = Statement(
        "INSERT INTO website VALUES (:website, 'shop', 'Shop', 'active', '{}', NULL, :now, :operation, NULL)")
    private static let insertRelay = Statement("INSERT INTO relay VALUES (:relay, 0, :now)")
    private static let insertUser = Statement(
        """
        INSERT INTO user VALUES (:user, :token, :website, :username, :email, :phone, NULL, NULL, 'active', NULL, NULL, NULL,
        NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, :challenge, 'a', NULL, :now, :operation, NULL)
        """)
    private static let insertDevice = Statement(
        """
        INSERT INTO device (id, user_id, state, platform, environment, push_token, push_token_at, public_key, thumbprint,
        created_at, operation, failures)
        VALUES (:device, :user, 'active', 'ios', 'production', 'token', :now, x'04', :thumbprint, :now, :operation, 0)
        """)
    private static let insertChallenge = Statement(
        """
        INSERT INTO challenge (id, website_id, user_id, state, policy, context, nonce, asked_at, expires_at, operation,
        receipt) VALUES (:challenge, :website, :user, 'asked', '{}', :context, :nonce, :now, :expiresAt, :operation, 'r')
        """)
    private static let insertStep = Statement("INSERT INTO step VALUES (:challenge, 1, 'push', 'queued', :now, NULL)")
    private static let insertPush = Statement(
        """
        INSERT INTO outbox (id, kind, challenge_id, device_id, due_at, attempts)
        VALUES (:entry, 'push', :challenge, :device, :dueAt, 0)
        """)
    private static let insertFactor = Statement(
        """
        INSERT INTO factor (id, user_id, kind, state, secret, sealed_by, algorithm, digits, counter, address, failures,
        created_at, confirmed_at, operation)
        VALUES (:factor, :user, 'mail', 'active', x'00', '1', 'sha1', 6, 0, 'a@example.com', 0, :now, :now, :operation)
        """)
    private static let insertActivation = Statement(
        """
        INSERT INTO activation VALUES (:digest, :user, :now, :expiresAt, NULL, NULL, NULL, 'a@example.com', :operation, NULL)
        """)
    private static let insertAudit = Statement(
        "INSERT INTO audit (operation, at, event, website_id) VALUES (:operation, :now, 'user.registered', :website)")
    private static let insertIdempotency = Statement(
        """
        INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, created_at)
        VALUES (:website, :digest, :fingerprint, 'running', :operation, :createdAt)
        """)

    private static let insertOperationSecret = Statement(
        "INSERT INTO operation_secret VALUES (:operation, x'00', '1', :expiresAt)")

    private static let insertWaitingFactor = Statement(
        """
        INSERT INTO factor (id, user_id, kind, state, algorithm, digits, counter, failures, created_at, operation)
        VALUES (:factor, :user, 'totp', 'waiting', 'sha1', 6, 0, 0, :now, :operation)
        """)
    private static let insertNotice = Statement(
        "INSERT INTO notice VALUES (:notice, :user, 'website', 'Title', 'Text', :now, NULL, :operation, NULL)")
    private static let insertCertificate = Statement(
        "INSERT INTO certificate VALUES (:serial, :device, NULL, NULL, :now, :expiresAt, NULL, 0)")
    private static let insertRecovery = Statement(
        """
        INSERT INTO recovery
        (id, user_id, factor, state, link, handle, cancel, address, challenge_id, started_by, created_at, expires_at,
        operation)
        VALUES (:recovery, :user, 'totp', 'opened', :digest, :digest, :digest, 'a@example.com', :challenge, 'website',
        :now, :expiresAt, :operation)
        """)
    private static let insertSentCode = Statement(
        "INSERT INTO sent_code VALUES (:factor, 0, :challenge, :now, :expiresAt, NULL)")
    private static let insertRecoveryCode = Statement(
        "INSERT INTO recovery_code VALUES (:user, :digest, :factor, 1, NULL, NULL)")

    private static func rows(_ number: Int) -> [BoundStatement] {
        let id = SQLValue.blob([UInt8](repeating: 0, count: 8) + bytes(number))
        // Most outbox entries are not due yet.
        let due = SQLValue.timestamp(number < 5 ? now - .seconds(5) : later)
        return [
            insertUser(
                user: id, token: id, website: .id(website), username: .text("user-\(number)"),
                email: .text("\(number)@example.com"), phone: .text("+4912345\(number)"), challenge: id,
                now: .timestamp(now), operation: id),
            insertDevice(device: id, user: id, now: .timestamp(now), thumbprint: .blob(key(number)), operation: id),
            insertChallenge(
                challenge: id, website: .id(website), user: id, context: .blob(Array("{}".utf8)), nonce: id,
                now: .timestamp(now), expiresAt: .timestamp(later), operation: id),
            insertStep(challenge: id, now: .timestamp(now)),
            insertPush(entry: id, challenge: id, device: id, dueAt: due),
            insertFactor(factor: id, user: id, now: .timestamp(now), operation: id),
            insertActivation(
                digest: .blob(key(number)), user: id, now: .timestamp(now), expiresAt: .timestamp(later), operation: id),
            insertWaitingFactor(
                factor: .id(Self.id(number + 20_000) as FactorID), user: id, now: .timestamp(now), operation: id),
            insertSentCode(factor: id, challenge: id, now: .timestamp(now), expiresAt: .timestamp(later)),
            insertRecoveryCode(user: id, digest: .blob(key(number)), factor: id),
            insertNotice(notice: id, user: id, now: .timestamp(now), operation: id),
            insertAttestation(device: id, user: id, now: .timestamp(now), operation: id),
            insertCertificate(
                serial: .text("\(number)"), device: id, now: .timestamp(now), expiresAt: .timestamp(later)),
            insertRecovery(
                recovery: id, user: id, digest: .blob(key(number)), challenge: id, now: .timestamp(now),
                expiresAt: .timestamp(later), operation: id),
            insertAudit(operation: id, now: .timestamp(now), website: .id(website)),
            insertIdempotency(
                website: .id(website), digest: .blob(key(number)), fingerprint: .blob(key(number)), operation: id,
                createdAt: due),
            insertOperationSecret(operation: id, expiresAt: .timestamp(later)),
        ]
    }

    /// Binds a further phone to the user with this number.
    static func bind(_ number: Int, on store: Store, as operation: Domain.Operation) async throws {
        _ = try await store.bind(
            phone(number + 10_000, of: number), digest: key(number), slots: 5, secret: secret(number + 10_000),
            as: operation)
    }

    static func addCode(
        _ digest: [UInt8], to number: Int, on store: Store, as operation: Domain.Operation
    ) async throws {
        _ = try await store.activate(
            NewActivation(
                digest: digest, user: id(number), approval: nil, approvedBy: nil, createdAt: now, expiresAt: later,
                mail: nil),
            website: website, secret: nil, as: operation)
    }

    /// Approves the challenge of the user with this number on the user's phone.
    static func approve(
        _ number: Int, on store: Store, as operation: Domain.Operation
    ) async throws -> ChallengeEndResult? {
        let phone = PhoneCredential(
            id: id(number), user: id(number), key: key(number), publicKey: [],
            website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
            failedAt: nil, isCertified: true)
        let life = ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later)
        return try await store.close(
            ChallengeEnd(challenge: id(number), life: life, device: phone, event: "challenge.answered", at: now),
            as: operation)
    }

    static func forget(
        _ number: Int, on store: Store, as operation: Domain.Operation
    ) async throws -> [ChallengeID]? {
        try await store.forget(id(number), website: website, at: now, as: operation)
    }

    /// Runs every store function, most of them for a separate user. The results do not matter here.
    static func runEverything(on store: Store) async throws {
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        func operation() -> Domain.Operation { operations.new(isRepeatable: true) }

        try await runPersonalSealing(on: store, operation)
        _ = try await store.website(named: "shop", key: key(1), at: now)
        _ = try await store.device(id(10), key: key(10))
        _ = try await store.device(key: key(10))
        let registration = Registration(
            username: "new", email: "n@example.com", phone: "+49", displayName: nil, language: nil)
        _ = try await store.register(
            NewUser(
                id: id(9001), token: id(9001), website: website, registration: registration, factors: [], createdAt: now
            ),
            activation: activation(9001, of: 9001), secret: secret(9001), as: operation())
        _ = try await store.countUsers(of: website, upTo: 10)
        _ = try await store.user(named: "user-10", of: website, at: now)
        _ = try await store.user(token: id(10), of: website, at: now)
        _ = try await store.devices(of: id(10), at: now)
        for approved in [nil, Approved(challenge: id(11), digest: key(11))] {
            let new = activation(approved == nil ? 9002 : 9008, of: 11, approvedBy: approved)
            _ = try await store.activate(new, website: website, secret: secret(9002), as: operation())
        }
        _ = try await store.run(Activations.subject("user-11", of: "shop"))
        _ = try await store.run(Activations.byOperator(activation(9009, of: 11), as: operation()))
        let (mailing, confirming) = (operation(), operation())
        _ = try await store.activate(
            try mailed(9010, of: 11, as: mailing), website: website, secret: nil, as: mailing)
        _ = try await store.run(
            Identities.confirm(
                Identities.Check(user: id(11), by: "Ben", document: "passport", at: now),
                activation: try mailed(9011, of: 11, as: confirming), as: confirming))
        _ = try await store.enrolment(of: id(12))
        _ = try await store.progress(of: id(9003), user: id(12), code: key(12), binding: id(12), at: now)
        _ = try await store.bind(
            attested(phone(9003, of: 12)), digest: key(12), slots: 5, secret: secret(9003), as: operation())
        try await runAttestations(on: store, operation)
        _ = try await store.await(id(9003), insteadOf: id(9004), device: id(9003))
        let admission = DeviceApproval(
            device: id(9003), user: id(12), challenge: id(12), approves: key(12), code: key(12),
            revocation: key(9003), at: now)
        _ = try await store.admit(admission, slots: 5, secret: secret(9003), as: operation())
        _ = try await store.device(id(22), ofUser: "user-22", of: website, at: now)
        _ = try await store.device(revocation: key(22))
        _ = try await store.run(Phones.any(id(22)))
        var unbinding = DeviceChange(id(22), of: id(22), by: .website, at: now)
        unbinding.state = .revoked
        _ = try await store.change(unbinding, as: operation())
        try await runCertificates(on: store, operation)
        _ = try await store.bindByWebsite(phone(9004, of: 13), website: website, as: operation())
        for subject in [Subject.token(id(14)), .username("user-14")] {
            _ = try await store.subject(subject, of: website, within: limits, key: request)
        }
        _ = try await store.ask(asked(9005, of: 14), within: limits, as: operation())
        try await runNotices(on: store, operation)
        try await runRecoveries(on: store, operation)
        try await runPhones(on: store, operation)
        _ = try await store.username(of: id(15), website: website)
        _ = try await store.use(
            VerifiedCode(user: id(15), factor: id(15), failures: 0, counter: 0, next: 1, at: now), as: operation())
        _ = try await store.factor(verifiedBy: id(15))
        _ = try await store.run(Expiries.set(id(15), to: later, at: now, as: operation()))
        _ = try await store.run(Expiries.soon(at: now))
        _ = try await store.run(Expiries.past(at: now))
        _ = try await store.run(Accounts.check(id(15)))
        _ = try await store.challenge(id(15), of: website)
        _ = try await store.pending(of: id(15), at: now)
        try await store.markSeen([SeenChallenge(challenge: id(15), at: now)])
        _ = try await store.challenge(id(15), of: id(15) as UserID)
        let end = ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later)
        let posture = JudgedPosture(
            answer: AttestedAnswer(facts: "{}", assertion: "assertion"),
            relied: JudgedPosture.Relied(binding: id(15), counter: 0, next: 1))
        let credential = PhoneCredential(
            id: id(15), user: id(15), key: key(15), publicKey: [],
            website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
            failedAt: nil, isCertified: true)
        for device in [credential, nil] {
            let closing = ChallengeEnd(
                challenge: id(device == nil ? 16 : 15), life: end, device: device,
                posture: device == nil ? nil : posture, event: "challenge.answered", at: now)
            _ = try await store.close(closing, as: operation())
        }
        var byWebsite = ChallengeEnd(challenge: id(16), life: end, event: "challenge.answered", at: now)
        byWebsite.approvedFor = id(16)
        _ = try await store.close(byWebsite, as: operation())
        try await runHarmful(on: store, operation)
        try await runCodes(on: store, operation)
        let over = ChallengeLife(state: .expired, decision: nil, reason: .expired, expiresAt: later)
        _ = try await store.close(
            ChallengeEnd(challenge: id(17), life: over, event: "challenge.expired", at: later), as: operation())
        _ = try await store.lease(
            OutboxLease(
                id: id(9006), relay: relay, now: now, leasedUntil: later, messagesLeasedUntil: later, limit: 100))
        _ = try await store.push(id(18))
        for (number, step) in [(18, StepState.sent), (19, .refused)] {
            let push = Push(
                id: id(number), challenge: id(number), user: id(number), device: id(number), deviceToken: "token",
                environment: .production, detail: .full, website: "Shop", service: nil, ip: nil, place: nil,
                askedAt: now, expiresAt: later)
            let settlement =
                step == .sent
                ? PushSettlement(of: push, step, nil, at: now)
                : PushSettlement(of: push, step, "Unregistered", tokenDeadSince: now, at: now)
            _ = try await store.settle(settlement, as: operation())
        }
        _ = try await store.postpone(id(20), by: relay, until: later)
        try await runMessages(on: store, operation)
        try await runCascade(on: store, operation)
        try await runWebhooks(on: store, operation)
        let repeated = IdempotentRequest(website: website, route: "r", key: "k", content: [])
        _ = try await store.begin(repeated, as: id(9007), relay: relay, at: now)
        _ = try await store.resume(repeated, as: id(9007), relay: relay)
        try await store.release([id(9007): repeated])
        try await store.finish(repeated, as: id(9007), StoredResponse(state: .done, status: 200, sealed: [1]))
        try await store.finish(repeated, as: id(9007), StoredResponse(state: .shown, status: 201, sealed: nil))
        _ = try await store.forget(id(21), website: website, at: now, as: operation())
        _ = try await store.sendHeartbeat(relay, at: now)
        try await runRetention(on: store)
        try await store.probe()
        try await runWatch(on: store)
        _ = try await store.run(FactorImport.subjects([("user-24", .hotp)], of: website))
        let token = FactorImport.New(
            id: id(9010), user: id(24), kind: .hotp, secret: [1], sealedBy: "key", algorithm: .sha1, digits: 6,
            period: nil, counter: 0, createdAt: now)
        _ = try await store.run(FactorImport.write(token, .replace, as: operation()))
        _ = try await store.factors(sealedBy: "key", skipping: 0)
        try await store.reseal([ResealedFactor(id: id(23), old: [1], new: [2], key: "other")])
        _ = try await store.run(KeyUse.factors)
        _ = try await store.run(KeyUse.answers(sealedBy: "key"))
        _ = try await store.run(KeyUse.operations)
        try await runRollingKeys(on: store, as: operation)
        _ = try await store.run(StoreStatus.query)
        try await store.addUsage(SMSUsage(id(9020), at: now, prefix: .all, parts: 1, cost: 1))
        _ = try await store.run(SMSUsageReport.query(of: now))
        if let charge = SMSLimits().charge(user: id(1), to: "+4915112345678", at: now) {
            let steps = [SMSBudget.hold(charge), SMSBudget.count(charge, message: id(1))]
            _ = try await store.run(Script("budget", writes: steps))
        }
        let other = Websites.New(
            id: id(2), name: "bank", displayName: "Bank", policy: "{}", webhook: nil, keyThumbprint: key(2),
            createdAt: now)
        _ = try await store.run(Websites.add(other, as: operation()))
        _ = try await store.run(Accounts.user("user-1", of: "shop"))
        _ = try await store.run(Accounts.device(id(15)))
        _ = try await store.run(Websites.list())
        _ = try await store.run(Websites.named("bank"))
        let traits = Websites.Traits(displayName: "Bank", policy: "{}", webhook: nil)
        _ = try await store.run(Websites.edit(id(2), from: traits, to: traits, at: now, as: operation()))
        _ = try await store.run(Websites.keys(of: id(2)))
        for isDisabled in [true, false] {
            _ = try await store.run(Websites.set(id(2), isDisabled: isDisabled, at: now, as: operation()))
        }
        for thumbprint in [key(2), nil] {
            _ = try await store.run(Websites.revokeKeys(of: id(2), thumbprint, at: now, as: operation()))
        }
        try await runWebsites(on: store, operation)
        try await runEndpoints(on: store, operation)
        try await runDirectory(on: store, operation)
        for count in [-1, nil] as [Int64?] { try await store.removeDeadRelay(relay, at: count, now: now) }
    }

    /// Locks and freezes users, and lifts that again.
    private static func runHarmful(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let lives = [
            ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later),
            ChallengeLife(state: .failed, decision: nil, reason: .wrongNumber, expiresAt: later),
            ChallengeLife(state: .answered, decision: .fraud, reason: .fraud, expiresAt: later),
        ]
        for (number, life) in zip(30..., lives) {
            // A phone with an earlier failure. The guard compares the row that was read.
            let phone = PhoneCredential(
                id: id(number), user: id(number), key: key(number), publicKey: [],
                website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"),
                failures: life.decision == .approve ? 1 : 0, failedAt: now, isCertified: true)
            let closing = ChallengeEnd(
                challenge: id(number), life: life, proof: .signed, device: phone, receipt: "receipt",
                uv: UserVerification.none,
                guesses: 1, event: "challenge.answered", at: now)
            _ = try await store.close(closing, as: operation())
        }
        // About the last user's login, which has already ended otherwise.
        let reporter = PhoneCredential(
            id: id(34), user: id(34), key: key(34), publicKey: [],
            website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
            failedAt: nil, isCertified: true)
        _ = try await store.freeze(LateFraud(challenge: id(34), phone: reporter, at: now), as: operation())
        _ = try await store.challenge(of: id(34), meantBy: id(34), at: now)
        _ = try await store.eligibility(of: id(30), at: now)
        let refused = RefusedDecision(
            fault: .late, website: website, user: id(30), device: id(30), challenge: id(30), at: now)
        try await store.recordRefusal(refused, as: operation())
        _ = try await store.run(Locks.lock(id(33), at: now, as: operation()))
        _ = try await store.unlock(id(33), from: [.locked], by: .website, at: now, as: operation())
    }

    /// Changes code factors.
    private static func runCodes(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let approved = Approved(challenge: id(50), digest: key(50))
        for (number, kind, approval) in [(50, .totp, approved), (51, .hotp, nil), (52, .recovery, nil)]
            as [(Int, Factor, Approved?)]
        {
            let new = NewFactor(
                id: id(number + 10_000), user: id(number), kind: kind, state: kind == .totp ? .waiting : .active,
                sealed: SealedSecret(bytes: [1], key: "1"), approvedBy: approval, at: now)
            let enrolling = FactorEnrolment(
                new, mayReplace: true, isVouchedFor: true, codes: kind == .recovery ? [key(number)] : [],
                secret: secret(number))
            _ = try await store.enrol(enrolling, website: website, as: operation())
        }
        guard let waiting = try await store.factors(of: id(53), at: now).first(where: \.waits) else { return }
        _ = try await store.countWrong(
            WrongCode(user: id(53), factors: [waiting], challenge: id(53), before: .none, guesses: 1, at: now),
            as: operation())
        let life = ChallengeLife(state: .failed, decision: nil, reason: .wrongCode, expiresAt: later)
        let end = ChallengeEnd(challenge: id(54), life: life, event: "challenge.ended", at: now)
        _ = try await store.countWrong(
            WrongCode(user: id(54), factors: [], challenge: id(54), before: .none, guesses: 10, end: end, at: now),
            as: operation())
        let reopening = CodeReopening(user: id(53), lockedAt: now, approved: approved, at: now)
        _ = try await store.reopenCodes(reopening, as: operation())
        _ = try await store.confirm(
            waiting, of: id(53), failures: 0, counter: 1, isVouchedFor: false, at: now, as: operation())
        _ = try await store.resynchronise(
            waiting, of: id(53), failures: 0, counter: 2, at: now, as: operation())
        _ = try await store.position(ofRecovery: key(53), in: waiting.id, of: id(53))
        _ = try await store.confirm(
            recovery: waiting, of: id(53), digest: key(53), failures: 0, isVouchedFor: true, at: now, as: operation())
        _ = try await store.drop(.recovery, of: id(52), by: .website, at: now, as: operation())
        try await runAddresses(on: store, operation)
        _ = try await store.drop(.mail, of: id(54), by: .website, at: now, as: operation())
        _ = try await store.unlock(id(53), recovery: key(53), of: id(53), failures: 0, at: now, as: operation())
        _ = try await store.recordCodeUse(id(53))
    }

    private static func activation(_ number: Int, of user: Int, approvedBy approved: Approved? = nil) -> NewActivation {
        NewActivation(
            digest: key(number), user: id(user), approval: nil, approvedBy: approved, createdAt: now, expiresAt: later,
            mail: nil)
    }

    private static func mailed(_ number: Int, of user: Int, as operation: Domain.Operation) throws -> NewActivation {
        var new = activation(number, of: user)
        new.mail = try ActivationMail(
            OperationSecret(drawnFrom: SystemRandomness()), for: id(user), of: website, language: "de", sender: relay,
            at: now, as: operation,
            by: try Sealer(keys: [Sealer.Key(id: "1", key: Secret([UInt8](repeating: 1, count: 32)))]),
            SystemRandomness())
        return new
    }

    static func secret(_ number: Int) -> StoredSecret {
        StoredSecret(operation: id(number), sealed: SealedSecret(bytes: [1], key: "1"), expiresAt: later)
    }

    static func phone(_ number: Int, of user: Int) -> NewDevice {
        NewDevice(
            id: id(number), user: id(user), name: nil, platform: .ios, environment: .production, pushToken: "t",
            publicKey: nil, thumbprint: key(number), revocation: nil, binding: nil, approval: nil, at: now)
    }

    static func asked(_ number: Int, of user: Int, isPushed: Bool = true) -> NewChallenge {
        NewChallenge(
            id: id(number), website: website, user: id(user), life: ChallengeLife(expiresAt: later), policy: "{}",
            context: Array("{}".utf8), nonce: bytes(1) + bytes(2), number: nil, approves: nil, language: nil,
            trace: nil, otherwise: .pull,
            pushes: isPushed
                ? [NewChallenge.PushEntry(id: id(number + 5000), device: id(user), leasedUntil: later, holder: relay)]
                : [],
            expiry: id(number), next: NewChallenge.NextFactor(id: id(number + 6000), due: later, holder: nil),
            askedAt: now)
    }

    /// Begins later factors, and submits codes.
    private static func runCascade(on store: Store, _ operation: () -> Domain.Operation) async throws {
        _ = try await store.cascade(id(60), at: now)
        for (number, factor) in zip(60..., [Factor.push, .sms, .totp]) {
            var step = NewStep(
                challenge: id(number), user: id(number), factor: factor, after: 1, interruptsPhone: true, at: now,
                limits: limits)
            step.next = NewChallenge.NextFactor(id: id(number + 6000), due: later, holder: nil)
            step.setsPushAside = factor == .totp
            if factor == .push {
                step.pushes = [
                    NewChallenge.PushEntry(id: id(number + 7000), device: id(number), leasedUntil: later, holder: relay)
                ]
            }
            if factor == .sms {
                step.code = CodeToSend(
                    id: id(number + 7000), factor: id(number), counter: 0, challenge: id(number), language: nil,
                    at: now, expiresAt: later, holder: relay, leasedUntil: later)
                step.charge = charge(id(number))
            }
            _ = try await store.begin(step, as: operation())
        }
        _ = try await store.begun(by: id(60))
        try await store.dropNext(id(60), after: 2)
        try await store.setPushAside(id(60))
        _ = try await store.codes(for: id(63), of: id(63), recovery: key(63), isTemporary: true, at: now, as: id(63))
        let kinds: [UsedCode.Kind] = [
            .own(counter: 0, becomes: 1), .sent(counter: 0), .recovery(digest: key(64)),
        ]
        for (number, kind) in zip(64..., kinds) {
            let life = ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: later)
            let code = UsedCode(user: id(number), factor: id(number), failures: 0, kind: kind)
            _ = try await store.close(
                ChallengeEnd(
                    challenge: id(number), life: life, factor: .totp, proof: .code, code: code,
                    event: "challenge.answered", at: now), as: operation())
        }
    }
}
