import Directory
import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Daemon

/// Syncs of users, from a CSV file to a store. The tests with slapd are in `DirectoryCommandTests`.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DirectorySyncTests {
    @Test(arguments: StoreKind.all) func addedUserLogsInWithAPhone(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        let outcome = try shop.sync("1,ada,ada@example.org,+4915112345678,Ada,en,", "2,bob,,,,,")
        #expect(outcome.counts.added == 2 && outcome.counts.users == 2 && outcome.conflicts.isEmpty)
        let phone = try await shop.bindPhone("ada")
        let asked = try await shop.login("ada")
        #expect(try await shop.rig.decide(.approve, asked.challenge, number: asked.number, by: phone) == .success)
        #expect(try shop.forged().isEmpty)
        // Nothing is left to do.
        let again = try shop.sync.run(shop.keys, allowsMany: false)
        #expect(again.plan.actions.isEmpty && again.plan.unchanged == 2)
    }

    @Test(arguments: StoreKind.all) func renameKeepsUserAndPhone(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,")
        let (id, phone) = (try shop.id("ada"), try await shop.bindPhone("ada"))
        let outcome = try shop.sync("1,ada.king,,,,,")
        #expect(outcome.counts.changed == 1)
        #expect(try shop.id("ada.king") == id && shop.id("ada") == nil)
        let asked = try await shop.login("ada.king")
        #expect(try await shop.rig.decide(.approve, asked.challenge, number: asked.number, by: phone) == .success)
    }

    /// Phones of the group could never approve, because their answers are not signed.
    @Test(arguments: StoreKind.all) func groupThatNoPhoneCanMeetIsNotSynced(kind: StoreKind) async throws {
        for (answers, demand) in [("certificate", "pin: required"), ("website", "max_uv_age: 60")] {
            let groups = "groups:\n  - group: board\n    policy: {\(demand)}"
            let shop = try await SyncedShop(kind, policies: ["answers": answers], groups)
            for run in [{ _ = try shop.sync("1,ada,,,,,board") }, { _ = try shop.sync.dryRun() }] {
                let failure = #expect(throws: Failure.self) { try run() }
                let message = failure?.message ?? ""
                #expect(message.hasPrefix("the group board of the directory staff: "), "\(message)")
                #expect(message.contains("needs answers: signed"), "\(message)")
            }
            #expect(try shop.user("ada") == nil)
            let signed = try await SyncedShop(kind, groups)
            #expect(try signed.sync("1,ada,,,,,board").counts.added == 1)
        }
    }

    /// The changes of a relay's own sync have the source as their actor, those of a command the operator.
    @Test(arguments: StoreKind.all) func changesNameTheSourceAsTheirActor(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind, "interval: 3600")
        try shop.sync("1,ada,,,,,")
        try shop.write("1,ada,,,,,", "2,bob,,,,,")
        shop.rig.time.advance(by: .seconds(7200))
        try await shop.syncDue()
        let ofSource = "SELECT count(*) FROM audit WHERE event = 'user.registered' AND actor = 'directory staff'"
        #expect(try shop.rig.count("SELECT count(*) FROM audit WHERE event = 'user.registered'") == 2)
        #expect(try shop.rig.count(ofSource) == 1)
    }

    // MARK: Leavers

    /// The policy of the website no longer fits that of the group, and somebody has left.
    @Test(arguments: StoreKind.all) func groupThatNoPhoneCanMeetKeepsNoLeaver(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind, "groups:\n  - group: board\n    policy: {pin: required}")
        try shop.sync("1,ada,,,,,", "2,bob,,,,,board")
        try shop.rig.execute("UPDATE website SET policy = json_set(policy, '$.answers', 'certificate')")
        let failure = #expect(throws: Failure.self) { try shop.sync("2,robert,,,,,board", "3,carl,,,,,") }
        #expect(failure?.message.contains("needs answers: signed") == true, "\(String(describing: failure))")
        #expect(failure?.next.hasPrefix("Only users whose entries are gone were disabled.") == true)
        #expect(try shop.user("ada")?.state == .disabled)
        #expect(try shop.user("bob")?.state == .active && shop.user("carl") == nil)
        // The limit holds here, too.
        try shop.rig.execute("UPDATE website SET policy = json_set(policy, '$.answers', 'signed')")
        try shop.sync("1,ada,,,,,", "2,bob,,,,,board", "3,carl,,,,,", "4,dora,,,,,")
        try shop.rig.execute("UPDATE website SET policy = json_set(policy, '$.answers', 'certificate')")
        let loss = #expect(throws: Failure.self) { try shop.sync("2,bob,,,,,board") }
        #expect(loss?.next.hasPrefix("Nothing was changed.") == true, "\(String(describing: loss))")
        #expect(try shop.user("carl")?.state == .active)
    }

    @Test(arguments: StoreKind.all) func leaverCannotLogInUntilTheReturn(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        let (ada, bob) = ("1,ada,ada@example.org,,,,", "2,bob,,,,,")
        try shop.sync(ada, bob)
        let phone = try await shop.bindPhone("ada")
        let open = try await shop.login("ada")

        #expect(try shop.sync(bob).counts.disabled == 1)
        #expect(try shop.user("ada")?.state == .disabled)
        #expect(try shop.reason(open.challenge) == "disabled")
        let refused = try await shop.login("ada")
        #expect(refused.factor == nil && refused.number == nil)
        #expect(try shop.reason(refused.challenge) == "disabled")
        await #expect(throws: Refusal.self) {
            try await shop.rig.decide(.approve, open.challenge, number: open.number, by: phone)
        }
        #expect(try shop.rig.count("SELECT count(*) FROM outbox WHERE challenge_id IS NOT NULL") == 0)
        #expect(try shop.rig.count("SELECT count(*) FROM audit WHERE event = 'user.disabled'") == 1)
        #expect(try shop.forged().isEmpty)
        #expect(try shop.sync.run(shop.keys, allowsMany: false).plan.actions.isEmpty)

        #expect(try shop.sync(ada, bob).counts.changed == 1)
        #expect(try shop.user("ada")?.state == .active)
        let asked = try await shop.login("ada")
        #expect(try await shop.rig.decide(.approve, asked.challenge, number: asked.number, by: phone) == .success)
        #expect(try shop.forged().isEmpty)
    }

    /// Whoever can undo a lock or a freeze must not be able to undo it for a leaver.
    @Test(arguments: StoreKind.all) func nobodyElseEnablesALeaver(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind, policies: ["further-factors": "website"])
        try shop.sync("1,ada,,,,,", "2,bob,,,,,")
        try shop.sync("2,bob,,,,,")
        let website = shop.website
        await #expect(throws: Refusal.self) {
            try await shop.rig.on { try await $0.unlock(username: "ada", by: website, as: $0.operations.new()) }
        }
        await #expect(throws: Refusal.self) {
            try await shop.rig.on {
                _ = try await $0.unlock(username: "ada", code: "abcd-efgh", by: website, as: $0.operations.new())
            }
        }
        let id = try #require(try shop.id("ada"))
        let unlock = Locks.unlock(
            id, from: [.locked, .frozen], by: .operator, at: shop.rig.time.now(), as: shop.keys.operations.new())
        #expect(try shop.rig.store.runBlocking(unlock) == false)
        #expect(try shop.user("ada")?.state == .disabled)
    }

    @Test(arguments: StoreKind.all) func lockOfTheOperatorReturnsWithTheUser(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,", "3,carl,,,,,")
        func lock(_ name: String) throws {
            let id = try #require(try shop.id(name))
            let lock = Locks.lock(id, at: shop.rig.time.now(), as: shop.keys.operations.new())
            #expect(try shop.rig.store.runBlocking(lock))
        }
        try lock("ada")
        try shop.sync("3,carl,,,,,", allowsMany: true)
        try lock("bob")
        #expect(try shop.user("ada")?.state == .disabled && shop.user("bob")?.state == .disabled)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,", "3,carl,,,,,")
        for name in ["ada", "bob"] {
            let user = try #require(try shop.user(name))
            #expect(user.state == .locked && user.stoppedBy == .operator && user.priorState == nil)
        }
        #expect(try shop.forged().isEmpty)
    }

    /// SQL without the key can disable a user, because that takes rights away. No lock may end by
    /// it.
    @Test(arguments: StoreKind.all) func lockOutlastsDisablingBySQL(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,")
        for name in ["ada", "bob"] {
            let id = try #require(try shop.id(name))
            let lock = Locks.lock(id, at: shop.rig.time.now(), as: shop.keys.operations.new())
            #expect(try shop.rig.store.runBlocking(lock))
        }
        try shop.rig.forge("UPDATE user SET state = 'disabled'")
        #expect(try shop.forged().isEmpty)
        let bob = try #require(try shop.id("bob"))
        let enable = Locks.enable(bob, at: shop.rig.time.now(), as: shop.keys.operations.new())
        #expect(try shop.rig.store.runBlocking(enable))
        try shop.sync("1,ada,,,,,")
        for name in ["ada", "bob"] {
            let user = try #require(try shop.user(name))
            #expect(user.state == .locked && user.stoppedBy == .operator, "\(name)")
        }
        #expect(try shop.forged().isEmpty)
    }

    @Test(arguments: StoreKind.all) func freezeReturnsWithTheUser(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,", "3,carl,,,,,")
        let phones = [try await shop.bindPhone("ada"), try await shop.bindPhone("bob")]
        let asked = try await shop.login("ada")
        #expect(try await shop.rig.decide(.fraud, asked.challenge, by: phones[0]) == .failure)
        let late = try await shop.login("bob")
        try shop.sync("3,carl,,,,,", allowsMany: true)
        // The challenge of the second user has ended; the report arrives afterwards.
        _ = try? await shop.rig.decide(.fraud, late.challenge, by: phones[1])
        #expect(try shop.user("ada")?.state == .disabled && shop.user("bob")?.state == .disabled)
        #expect(try shop.user("bob")?.priorState == .frozen)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,", "3,carl,,,,,")
        #expect(try shop.user("ada")?.state == .frozen && shop.user("bob")?.state == .frozen)
        #expect(try shop.forged().isEmpty)
    }

    @Test(arguments: StoreKind.all) func operatorTakesAUserOutOfTheDirectory(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,")
        try shop.sync("2,bob,,,,,")
        let id = try #require(try shop.id("ada"))
        let enable = { Locks.enable(id, at: shop.rig.time.now(), as: shop.keys.operations.new()) }
        #expect(try shop.rig.store.runBlocking(enable()))
        #expect(try shop.rig.store.runBlocking(enable()) == false)
        let user = try #require(try shop.user("ada"))
        #expect(user.state == .active && user.directory == nil && user.directoryID == nil)
        #expect(try shop.sync("2,bob,,,,,").plan.actions.isEmpty)
        #expect(try shop.sync("1,ada,,,,,", "2,bob,,,,,").conflicts.count == 1)
        #expect(try shop.forged().isEmpty)
    }

    // MARK: Addresses and groups

    @Test(arguments: StoreKind.all) func codesGoToTheNewAddressAlone(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,old@example.org,+4915112345678,,,")
        try shop.sync("1,ada,new@example.org,,,,", allowsMany: true)
        let factors = try #require(try shop.user("ada")?.factors).filter { $0.address != nil }
        #expect(factors.map(\.kind) == [.mail] && factors.map(\.state) == [.active])
        #expect(factors.map(\.address) == ["new@example.org"])
        let user = try #require(try shop.user("ada"))
        #expect(user.email == "new@example.org" && user.phone == nil)
        #expect(try shop.forged().isEmpty)
    }

    /// The address in the row and that of the mail factor must stay the same one.
    @Test(arguments: StoreKind.all) func addressThatChangedAfterThePlanIsKept(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,old@example.org,,Ada,,")
        try shop.write("1,ada,old@example.org,,Ada King,,")
        let outcome = try shop.sync(afterThePlan: "UPDATE user SET email = 'new@example.org'")
        #expect(outcome.counts.changed == 0 && outcome.conflicts.map(\.entry) == ["ada"])
        let user = try #require(try shop.user("ada"))
        #expect(user.email == "new@example.org" && user.displayName == "Ada")
        // The next sync goes on, with the factor of the address.
        #expect(try shop.sync.run(shop.keys, allowsMany: false).counts.changed == 1)
        #expect(try shop.user("ada")?.email == "old@example.org" && shop.user("ada")?.displayName == "Ada King")
    }

    @Test(arguments: StoreKind.all) func valueThatIsNotMappedIsNeverWritten(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind, "attributes: {phone: ~, display_name: ~, language: ~}")
        try shop.sync("1,ada,old@example.org,,,,")
        try shop.write("1,ada,new@example.org,,,,")
        let outcome = try shop.sync(
            afterThePlan: "UPDATE user SET phone = '+4915112345678', display_name = 'Ada', language = 'en'")
        #expect(outcome.counts.changed == 1 && outcome.conflicts.isEmpty)
        let user = try #require(try shop.user("ada"))
        #expect(user.email == "new@example.org" && user.phone == "+4915112345678")
        #expect(user.displayName == "Ada" && user.language == "en")
        #expect(try shop.forged().isEmpty)
    }

    @Test(arguments: StoreKind.all) func websiteMayRequireConfirmedAddresses(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind, policies: ["addresses": "confirmed"])
        try shop.sync("1,ada,old@example.org,,,,")
        #expect(try shop.user("ada")?.factors.map(\.state) == [.waiting])
        try shop.sync("1,ada,new@example.org,,,,")
        let factors = try #require(try shop.user("ada")?.factors)
        #expect(factors.map(\.state) == [.waiting] && factors.map(\.address) == ["new@example.org"])
    }

    /// A user from a directory gets a code only when the website or an operator asks for one.
    @Test(arguments: StoreKind.all, ["letter", "confirmed"])
    func syncMailsNoActivation(kind: StoreKind, ceremony: String) async throws {
        let shop = try await SyncedShop(kind, policies: ["enrolment": ceremony, "addresses": "confirmed"])
        try shop.sync("1,ada,old@example.org,,,,")
        try shop.sync("1,ada,new@example.org,,,,")
        #expect(try shop.rig.count("SELECT count(*) FROM activation") == 0)
        #expect(try shop.rig.count("SELECT count(*) FROM outbox WHERE kind = 'mail'") == 0)
    }

    /// The attack: somebody reads the mailbox that the user no longer has.
    @Test(arguments: StoreKind.all, ["new@example.org", ""])
    func activationMailedToAFormerAddressIsVoid(kind: StoreKind, address: String) async throws {
        let shop = try await SyncedShop(kind, policies: ["enrolment": "letter"])
        try shop.sync("1,ada,old@example.org,,,,")
        let code = try await shop.mailedCode("ada")
        // A change of something else leaves the code as it is.
        try shop.sync("1,ada,old@example.org,,Ada,,")
        #expect(try shop.rig.count("SELECT count(*) FROM activation WHERE used_at IS NULL") == 1)
        try shop.sync("1,ada,\(address),,Ada,,", allowsMany: true)
        let token = try await shop.token("ada")
        let thief = try TestPhone(pushToken: "thief")
        await #expect(throws: Refusal.unauthenticated) {
            try await shop.rig.bind(thief, user: token, code: code, website: "shop")
        }
        #expect(try shop.forged().isEmpty)
        try shop.rig.forge("UPDATE activation SET used_at = NULL")
        await #expect(throws: Refusal.broken) {
            try await shop.rig.bind(thief, user: token, code: code, website: "shop", from: "198.51.100.1")
        }
    }

    @Test(arguments: StoreKind.all) func policyOfTheGroupAppliesToLogins(kind: StoreKind) async throws {
        let shop = try await SyncedShop(
            kind, policies: ["number": "2"],
            """
            groups:
              - {group: admins, policy: {number: 6, min_uv: biometric}}
              - {group: staff, policy: {number: 0}}
            """)
        try shop.sync("1,ada,,,,,staff;admins", "2,bob,,,,,staff", "3,carl,,,,,")
        for (name, digits) in [("ada", 6), ("bob", 0), ("carl", 2)] {
            _ = try await shop.bindPhone(name)
            #expect(try await shop.login(name).number?.count ?? 0 == digits, "\(name)")
        }
        let policy = try shop.rig.text(
            "SELECT c.policy FROM challenge c JOIN user u ON u.id = c.user_id WHERE u.username = 'ada'")
        #expect(policy.contains(#""min-uv":"biometric""#))
        // The policy goes with the group.
        try shop.sync("1,ada,,,,,", "2,bob,,,,,", "3,carl,,,,,", allowsMany: true)
        #expect(try await shop.login("ada").number?.count == 2)
        #expect(try shop.forged().isEmpty)
    }

    // MARK: Conflicts

    @Test(arguments: StoreKind.all) func addressOfAnotherUserIsReportedAndNotMerged(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,same@example.org,,,,")
        let outcome = try shop.sync("1,ada,same@example.org,,,,", "2,bob,same@example.org,,,,", "3,carl,,,,,")
        #expect(outcome.conflicts.map(\.entry) == ["line 2", "line 3"])
        #expect(try shop.user("ada")?.email == "same@example.org" && shop.user("bob") == nil)
        #expect(try shop.user("carl") != nil)
    }

    @Test(arguments: StoreKind.all) func websitesOwnUserIsAdoptedOnlyOnRequest(kind: StoreKind) async throws {
        for adopts in [false, true] {
            let shop = try await SyncedShop(kind, "adopt: \(adopts)")
            let (_, phone, credential) = try await shop.rig.enrolled("ada", at: shop.website)
            let id = try shop.id("ada")
            let outcome = try shop.sync("1,ada,ada@example.org,,,,")
            #expect(outcome.conflicts.count == (adopts ? 0 : 1))
            let user = try #require(try shop.user("ada"))
            #expect(user.id == id && user.directory == (adopts ? "staff" : nil))
            #expect(user.email == (adopts ? "ada@example.org" : nil))
            let asked = try await shop.login("ada")
            let result = try await shop.rig.decide(
                .approve, asked.challenge, number: asked.number, by: (phone, credential))
            #expect(result == .success)
            #expect(try shop.forged().isEmpty)
        }
    }

    @Test(arguments: StoreKind.all) func forgedRowIsLeftOutAndReported(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,")
        try shop.rig.forge("UPDATE user SET email = 'eve@example.org' WHERE username = 'ada'")
        let outcome = try shop.sync("1,ada,ada@example.org,,,,", "2,bob,bob@example.org,,,,", "3,carl,,,,,")
        #expect(outcome.counts.changed == 1 && outcome.counts.added == 1)
        #expect(outcome.conflicts.map(\.entry) == ["ada"])
        #expect(try shop.user("ada")?.email == "eve@example.org" && shop.user("bob")?.email == "bob@example.org")
        #expect(try shop.forged().map(\.verdict).count == 1)
    }

    /// With write access to the store and no key, nobody moves a user to another entry, enables a
    /// leaver, or weakens the policy of a group.
    @Test(arguments: [
        "directory_id = '9'", "policy = '{\"number\":\"0\"}'", "state = 'active'",
        "state = 'locked', stopped_by = NULL",
        "prior_state = 'locked'", "directory = NULL",
    ])
    func changeBySQLMakesTheRowUnusable(change: String) async throws {
        let shop = try await SyncedShop(.memory)
        try shop.sync("1,ada,,,,,", "2,bob,,,,,")
        try shop.sync("2,bob,,,,,")
        try shop.rig.forge("UPDATE user SET \(change) WHERE username = 'ada'")
        #expect(try shop.forged().count == 1)
        await #expect(throws: Refusal.self) { try await shop.login("ada") }
    }

    /// Values that would be SQL, markup or a formula elsewhere are values here.
    @Test(arguments: StoreKind.all) func valuesNeverBecomeSQL(kind: StoreKind) async throws {
        let shop = try await SyncedShop(kind)
        let evil = "x'); DROP TABLE user; --"
        try shop.sync("'; --,\(evil),a'b@example.org,,=1+1<b>,en,", "2,bob%,,,' OR 1=1,,")
        let user = try #require(try shop.user(evil))
        #expect(user.directoryID == "'; --" && user.email == "a'b@example.org" && user.displayName == "=1+1<b>")
        #expect(try shop.user("bob%")?.displayName == "' OR 1=1")
        #expect(try shop.rig.count("SELECT count(*) FROM user") == 2)
    }
}
