import Crypto
import Domain
import World

@testable import Relay
@testable import Storage

extension Sample {
    /// Runs the statements with which operators list, export and delete users.
    static func runPeople(on store: Store, _ operation: () -> Domain.Operation) async throws {
        _ = try await store.run(UserList.page(of: website, after: "user-2", at: now))
        _ = try await store.run(LoginHistory.logins(of: id(60), before: later, most: 20))
        _ = try await store.run(PersonalExport.audit(of: id(60), at: now, as: operation()))
        _ = try await store.run(PersonalExport.all(of: id(60)))
        _ = try await store.run(Announcements.unsent(to: id(60)))
        _ = try await store.run(Accounts.unusedRecoveryCodes(of: id(60)))
        try await runTemporaryCodes(on: store, operation)
        try await runAudit(on: store, operation)
    }

    /// Runs the statements with which programs write and operators read the audit.
    private static func runAudit(on store: Store, _ operation: () -> Domain.Operation) async throws {
        _ = try await store.run(ProgramEvents.record("backup.begun", note: "words", at: now, as: operation()))
        for named in [AuditSubject.Named.website("shop"), .user("user-2", website: "shop"), .identified(id(60))] {
            _ = try await store.run(AuditSubject.find(named))
        }
        _ = try await store.run(AuditSubject.find(.device(id(60))))
        _ = try await store.run(AuditTrail.newest(20))
        var filter = AuditTrail.Filter()
        _ = try await store.run(AuditTrail.page(filter, after: nil))
        filter.since = now
        _ = try await store.run(AuditTrail.page(filter, after: nil))
        filter.user = id(60)
        _ = try await store.run(AuditTrail.page(filter, after: nil))
        _ = try await store.run(AuditHeadCandidate.page(after: []))
        _ = try await NewestAuditRow.read(store, try RowAuthenticator(keys: [AuditFixture.key]))
        _ = try await store.run(AuditHeadCandidate.of([AuditCheckpoint.retired]))
        _ = try await store.run(AuditHeadCandidate.writers(after: Int64(count) - 10))
        let key = try P256PrivateKey.generate().publicKey
        _ = try await store.run(AuditHeadCandidate.links(of: AuditCheckpoint.retired, upTo: 9, key: key))
        _ = try await store.run(Websites.identified(id(1)))
        try await runExamination(on: store)
    }

    /// Runs the statements of `twoefay doctor`.
    private static func runExamination(on store: Store) async throws {
        _ = try await store.run(StoreExamination.relays)
        _ = try await store.run(StoreExamination.starts(at: now))
        _ = try await store.run(StoreExamination.clock)
        _ = try await store.run(StoreExamination.commit)
        _ = try await store.run(SchemaState.query)
    }
}
