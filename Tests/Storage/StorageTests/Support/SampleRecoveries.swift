import Bytes
import Crypto
import Domain
import World

@testable import Relay
@testable import Storage

extension Sample {
    /// Runs every statement about recoveries.
    static func runRecoveries(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let sealer = try Sealer(keys: [Sealer.Key(id: "1", key: Secret([UInt8](repeating: 1, count: 32)))])
        func delivery(_ user: Int, _ operation: Domain.Operation) -> RecoveryMail.Delivery {
            RecoveryMail.Delivery(
                to: id(user), of: website, language: "de", sender: relay, at: now, as: operation, by: sealer,
                SystemRandomness())
        }
        func row(_ number: Int, _ state: RecoveryState) -> RecoveryRow {
            RecoveryRow(
                id: id(number), user: id(number), token: id(number), username: "user-\(number)", factor: .totp,
                life: RecoveryLife(state: state, readyAt: nil, expiresAt: later), proof: nil, startedBy: .website,
                challenge: id(number), cancel: key(number), createdAt: now, operation: id(number),
                address: "user@example.com")
        }
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        let starting = operation()
        _ = try await store.start(
            try NewRecovery(.totp, of: id(90), by: .website, drawn, delivery(90, starting)), as: starting)
        for token in [RecoveryToken.link(key(91)), .handle(key(91)), .cancel(key(91))] {
            _ = try await store.recovery(token, of: website)
        }
        _ = try await store.recoveries(of: id(91), at: now)
        let stored = Self.secret(9800)
        let opening = RecoveryOpening(
            recovery: row(91, .sent), life: RecoveryLife(state: .opened, readyAt: now, expiresAt: later),
            handle: key(9801), secret: stored, at: now)
        _ = try await store.open(opening, as: operation())
        let announcement = RecoveryAnnouncement(operation(), sender: relay, at: now)
        for entry in [nil, announcement] {
            let asking = RecoveryAsking(recovery: row(93, .opened), challenge: id(9802), entry: entry, at: now)
            _ = try await store.ask(asking, as: operation())
        }
        _ = try await store.timesAsked(about: row(93, .opened))
        for approved in [nil, Approved(challenge: id(94), digest: key(94))] {
            let proving = operation()
            let proof = try RecoveryProving(
                row(94, .opened), RecoveryLife(state: .proved, readyAt: now, expiresAt: later), by: .totp, approved,
                announcement: announcement, drawn, delivery(94, proving))
            _ = try await store.prove(proof, as: proving)
        }
        let mailed = operation()
        let mail = try RecoveryProving(
            row(94, .opened), RecoveryLife(state: .proved, readyAt: now, expiresAt: later), by: .totp, nil,
            announcement: nil, drawn, delivery(94, mailed)
        ).mails[0]
        let content = MailedRecovery(
            id: id(94), event: mail.event, lost: .totp,
            life: RecoveryLife(state: .proved, readyAt: now, expiresAt: later), policy: "{}", sealed: [1])
        let message = MessageRow(
            id: mail.entry, kind: .mail, user: id(94), token: id(94), website: website, websiteKey: "shop",
            websitePolicy: "{}", isToFactor: false, challenge: nil, websiteName: "Shop",
            userName: nil, language: nil, address: "a@example.com", content: .recovery(content), createdAt: now,
            expiresAt: later, attempts: 0, reason: nil, ambiguousAt: nil, deadline: nil)
        let settlement = MessageSettlement(of: message, .sent, nil, isDead: false, acceptedAt: now, at: now)
        _ = try await store.settle(settlement, as: operation())
        _ = try await store.recovery(announcedBy: announcement.entry)
        try await store.dropAnnouncement(announcement.entry)
        try await runRecoveryEnds(on: store, operation)
    }

    private static func runRecoveryEnds(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let use = RecoveryUse(recovery: id(95), operation: id(95), at: now)
        for (kind, state) in [(Factor.totp, FactorState.waiting), (.hotp, .active)] {
            let factor = NewFactor(
                id: id(kind == .totp ? 9810 : 9811), user: id(95), kind: kind, state: state,
                sealed: SealedSecret(bytes: [1], key: "1"), recovery: use, at: now)
            _ = try await store.enrol(
                FactorEnrolment(factor, mayReplace: true, isVouchedFor: true), website: website, as: operation())
        }
        let app = CodeFactor(
            id: id(20_095), kind: .totp, state: .active, secret: [1], algorithm: .sha1, digits: 6, period: 30,
            counter: 0, address: nil, failures: 0, failedAt: nil, createdAt: now, confirmedAt: now)
        _ = try await store.use(app, of: id(95), failures: 0, step: 1, at: now, as: operation())
        let waiting = CodeFactor(
            id: id(9810), kind: .totp, state: .waiting, secret: [1], algorithm: .sha1, digits: 6, period: 30,
            counter: 0, address: nil, failures: 0, failedAt: nil, createdAt: now, confirmedAt: nil)
        _ = try await store.confirm(
            waiting, of: id(95), failures: 0, counter: 1, isVouchedFor: true, at: now, as: operation())
        var activation = NewActivation(
            digest: key(9812), user: id(96), approval: .recovery, approvedBy: nil, createdAt: now, expiresAt: later,
            mail: nil)
        activation.recovery = RecoveryUse(recovery: id(96), operation: id(96), at: now)
        _ = try await store.activate(activation, website: website, secret: nil, as: operation())
        var replacing = phone(9813, of: 97)
        replacing.replacesOthers = true
        _ = try await store.bind(replacing, digest: key(97), slots: 5, secret: secret(9813), as: operation())
        for decision in [Decision.approve, .deny] {
            let number = decision == .approve ? 98 : 99
            let phone = PhoneCredential(
                id: id(number), user: id(number), key: key(number), publicKey: [],
                website: WebsiteRow(id: website, name: "shop", displayName: "Shop", policy: "{}"), failures: 0,
                failedAt: nil, isCertified: true)
            let life = ChallengeLife(
                state: .answered, decision: decision, reason: decision == .deny ? .denied : nil, expiresAt: later)
            var closing = ChallengeEnd(
                challenge: id(number), life: life, device: phone, event: "challenge.answered", at: now)
            closing.isApproval = true
            _ = try await store.close(closing, as: operation())
        }
        _ = try await store.run(
            Recoveries.cancelAll(of: id(88), .totp, by: .operator, at: now, as: operation()))
        _ = try await store.cancel(RecoveryCancelling(id(89), of: id(89), by: .website, at: now), as: operation())
    }
}

extension CodeFactor {
    var waits: Bool { state == .waiting }
}
