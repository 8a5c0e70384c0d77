import Domain
import Testing

@testable import Directory

/// The plan of a sync: users of a website against the records of a directory.
@Suite struct DirectoryPlannerTests {
    private static func id(_ number: UInt8) -> UserID {
        UserID(leading: [UInt8](repeating: 0, count: 15) + [number])
    }

    private static func user(
        _ number: UInt8, _ name: String, entry: String? = nil, source: String? = "staff", email: String? = nil,
        phone: String? = nil, policy: String? = nil, isDisabled: Bool = false, isUnreadable: Bool = false
    ) -> DirectoryUser {
        DirectoryUser(
            user: id(number), username: name, email: email, phone: phone, displayName: nil, language: nil,
            policy: policy, isDisabled: isDisabled, source: source, id: source == nil ? nil : entry ?? "\(number)",
            hasUnreadableAddress: isUnreadable)
    }

    private static func record(
        _ id: String, _ name: String, email: String? = nil, phone: String? = nil, policy: String? = nil
    ) -> DirectoryRecord {
        DirectoryRecord(id: id, username: name, email: email, phone: phone, policy: policy)
    }

    /// Plans a sync of these records, through the entries that a source returns.
    private func plan(
        _ records: [DirectoryRecord], owned: [DirectoryUser] = [], others: [DirectoryUser] = [], adopts: Bool = false,
        broken: [String] = [], withoutID: Bool = false, mapping: DirectoryMapping = .standard, policies: [String] = []
    ) -> DirectoryPlan {
        var content = DirectoryContent()
        for record in records {
            var values = ["entryuuid": record.id, "uid": record.username]
            values["mail"] = record.email
            values["mobile"] = record.phone
            let entry = DirectoryEntry(
                name: "uid=\(record.username)", values: values.mapValues { [Array($0.utf8)] })
            content.add(entry, as: mapping) { _ in record.policy }
        }
        for id in broken {
            content.add(DirectoryEntry(name: id, values: ["entryuuid": [Array(id.utf8)]]), as: mapping) { _ in nil }
        }
        if withoutID { content.add(DirectoryEntry(name: "?", values: [:]), as: mapping) { _ in nil } }
        let planner = DirectoryPlanner(
            source: "staff", mapping: mapping, adopts: adopts, policies: policies, owned: owned)
        let wanted = planner.wanted(by: content)
        let holders = (owned + others).filter { user in
            wanted.contains { record in
                isSame(record.username, user.username) || record.email != nil && isSame(record.email, user.email)
                    || record.phone != nil && isSame(record.phone, user.phone)
            }
        }
        return planner.plan(content, holders: holders)
    }

    private func names(_ plan: DirectoryPlan) -> [String] {
        plan.actions.map { action in
            switch action {
            case .add(let record): "add \(record.username)"
            case .update(let update):
                "update \(update.user.username)" + (update.adopts ? " adopt" : "") + (update.enables ? " enable" : "")
                    + update.changes.map { " \($0.field)" }.joined()
            case .disable(let user): "disable \(user.username)"
            }
        }
    }

    @Test func newEntryIsAdded() {
        #expect(names(plan([Self.record("1", "ada")])) == ["add ada"])
    }

    @Test func sameUserIsLeftAsItIs() {
        let plan = plan(
            [Self.record("1", "ada", email: "a@example.org")],
            owned: [Self.user(1, "ada", email: "a@example.org")])
        #expect(plan.actions.isEmpty && plan.unchanged == 1 && plan.conflicts.isEmpty)
    }

    @Test func renamedEntryIsARename() {
        let plan = plan([Self.record("1", "ada.king")], owned: [Self.user(1, "ada")])
        #expect(names(plan) == ["update ada username"])
    }

    @Test func changedValuesAreNamed() {
        let plan = plan(
            [Self.record("1", "ada", email: "new@example.org", policy: "{}")],
            owned: [Self.user(1, "ada", email: "old@example.org", phone: "+4915112345678")])
        #expect(names(plan) == ["update ada email phone policy"])
        #expect(plan.losses == 1)
    }

    @Test func attributeThatIsNotMappedStaysAsItIs() {
        var mapping = DirectoryMapping.standard
        mapping.phone = nil
        let plan = plan(
            [Self.record("1", "ada")], owned: [Self.user(1, "ada", phone: "+4915112345678")], mapping: mapping)
        #expect(plan.actions.isEmpty && plan.unchanged == 1)
    }

    @Test func leaverIsDisabledAndReturnerEnabled() {
        let bob = Self.record("2", "bob")
        #expect(names(plan([bob], owned: [Self.user(1, "ada"), Self.user(2, "bob")])) == ["disable ada"])
        #expect(names(plan([bob], owned: [Self.user(1, "ada", isDisabled: true), Self.user(2, "bob")])) == [])
        #expect(names(plan([bob], owned: [Self.user(2, "bob", isDisabled: true)])) == ["update bob enable"])
    }

    @Test func entryThatCannotBeUsedKeepsItsUser() {
        let plan = plan([Self.record("2", "bob")], owned: [Self.user(1, "ada"), Self.user(2, "bob")], broken: ["1"])
        #expect(plan.actions.isEmpty)
        #expect(plan.conflicts.map(\.message) == ["uid is missing"])
    }

    @Test func nobodyIsDisabledIfAnEntryHasNoID() {
        let plan = plan([Self.record("2", "bob")], owned: [Self.user(1, "ada"), Self.user(2, "bob")], withoutID: true)
        #expect(plan.actions.isEmpty && plan.keepsLeavers)
    }

    // MARK: Conflicts

    /// The founding description asks for it: one address at two users is reported, and never merged.
    @Test(arguments: ["email", "phone"]) func addressOfTwoEntriesIsAConflictOfBoth(field: String) {
        let records = ["1", "2"].map { id in
            Self.record(
                id, "user\(id)", email: field == "email" ? "same@example.org" : nil,
                phone: field == "phone" ? "+4915112345678" : nil)
        }
        let plan = plan(records + [Self.record("3", "carl")])
        #expect(names(plan) == ["add carl"])
        #expect(plan.conflicts.map(\.entry) == ["uid=user1", "uid=user2"])
        #expect(plan.conflicts.allSatisfy { $0.message.hasPrefix("\(field): 2 entries have ") })
    }

    @Test func usernameOrIDOfTwoEntriesIsAConflictOfBoth() {
        #expect(plan([Self.record("1", "ada"), Self.record("2", "ada")]).conflicts.count == 2)
        #expect(plan([Self.record("1", "ada"), Self.record("1", "bob")]).conflicts.count == 2)
    }

    @Test func duplicateOfAUserKeepsIt() {
        let plan = plan([Self.record("1", "ada"), Self.record("2", "ada")], owned: [Self.user(1, "ada")])
        #expect(plan.actions.isEmpty && plan.conflicts.count == 2)
    }

    @Test func addressOfAnotherUserIsAConflict() {
        let other = Self.user(9, "website's", source: nil, email: "same@example.org", phone: "+4915112345678")
        for record in [
            Self.record("1", "ada", email: "same@example.org"), Self.record("1", "ada", phone: "+4915112345678"),
        ] {
            #expect(plan([record], others: [other]).conflicts.count == 1)
            let known = plan([record], owned: [Self.user(1, "ada")], others: [other])
            #expect(known.actions.isEmpty && known.conflicts.count == 1)
        }
    }

    @Test func usernameOfAnotherUserIsAConflictForARename() {
        let plan = plan(
            [Self.record("1", "bob"), Self.record("2", "carl")], owned: [Self.user(1, "ada"), Self.user(2, "bob")])
        #expect(names(plan) == ["update bob username"])
        #expect(plan.conflicts.map(\.message) == ["username: bob belongs to the user bob already"])
    }

    /// The new entry may be another person, who must not get the phones of the one who left.
    @Test func newEntryDoesNotInheritTheUserOfAFormerOne() {
        let plan = plan([Self.record("2", "ada")], owned: [Self.user(1, "ada")])
        #expect(names(plan) == ["disable ada"])
        #expect(plan.conflicts.count == 1)
    }

    @Test func usersOfTheWebsiteAreAdoptedOnlyOnRequest() {
        let ada = Self.user(1, "ada", source: nil)
        let records = [Self.record("1", "ada", email: "a@example.org")]
        #expect(plan(records, others: [ada]).conflicts.map(\.entry) == ["uid=ada"])
        #expect(names(plan(records, others: [ada], adopts: true)) == ["update ada adopt email"])
    }

    @Test func usersOfAnotherSourceAreNeverAdopted() {
        let ada = Self.user(1, "ada", source: "partners")
        let plan = plan([Self.record("1", "ada")], others: [ada], adopts: true)
        #expect(plan.actions.isEmpty)
        #expect(plan.conflicts.map(\.message) == ["username: ada is a user of the directory partners"])
    }

    /// Swift compares these as equal, but the store does not.
    @Test func usernamesWithDifferentBytesAreDifferentUsers() {
        let other = Self.user(9, "e\u{301}va", source: nil)
        #expect(names(plan([Self.record("1", "\u{e9}va")], others: [other])) == ["add \u{e9}va"])
    }

    @Test func idsWithDifferentBytesAreDifferentUsers() {
        let (composed, decomposed) = ("\u{e9}", "e\u{301}")
        let owned = [Self.user(1, "ada", entry: composed), Self.user(2, "bob", entry: decomposed)]
        #expect(names(plan([Self.record("3", "carl")], owned: owned, broken: [composed, decomposed])) == ["add carl"])
        let left = plan([Self.record(composed, "ada")], owned: owned)
        #expect(names(left) == ["disable bob"] && left.unchanged == 1)
        #expect(plan([Self.record(composed, "ada"), Self.record(decomposed, "bob")], owned: owned).unchanged == 2)
    }

    // MARK: The limit

    @Test(arguments: [
        (users: 100, leavers: 20, percent: 20, isExceeded: false), (100, 21, 20, true), (3, 1, 20, false),
        (3, 2, 20, true), (3, 1, 0, true), (3, 0, 0, false), (10, 10, 100, false),
    ])
    func limitCountsLeavers(users: Int, leavers: Int, percent: Int, isExceeded: Bool) {
        let owned = (0..<users).map { Self.user(UInt8($0), "user\($0)") }
        let plan = plan(owned.dropFirst(leavers).map { Self.record($0.id ?? "", $0.username) }, owned: owned)
        #expect(plan.losses == leavers)
        #expect(plan.exceeds(percent: percent) == isExceeded)
    }

    /// An account that may no longer read the attribute sees it as empty.
    @Test func limitCountsUsersWhoLoseAnAddress() {
        let owned = (0..<10).map { Self.user(UInt8($0), "user\($0)", email: "\($0)@example.org") }
        let plan = plan(owned.map { Self.record($0.id ?? "", $0.username) }, owned: owned)
        #expect(plan.losses == 10 && plan.exceeds(percent: 20))
    }

    /// If a group is deleted, renamed or hidden from the account, the server finds no members.
    @Test func limitCountsUsersWhoLoseThePolicyOfAGroup() {
        let owned = (0..<10).map { Self.user(UInt8($0), "user\($0)", policy: "admins") }
        let plan = plan(owned.map { Self.record($0.id ?? "", $0.username) }, owned: owned, policies: ["admins"])
        #expect(plan.losses == 10 && plan.lostPolicies == 10 && plan.exceeds(percent: 20))
    }

    /// The first group of the settings decides, so a later one may be weaker. `former` is the
    /// policy of a group before its settings changed.
    @Test(
        arguments: [
            ("admins", "staff", true), ("staff", nil, true), ("former", nil, true), ("staff", "admins", false),
            ("former", "admins", false), ("admins", "new", false), (nil, "staff", false),
        ] as [(before: String?, after: String?, isLost: Bool)])
    func policyOfALaterGroupOrNoneIsALoss(before: String?, after: String?, isLost: Bool) {
        let plan = plan(
            [Self.record("1", "ada", policy: after)], owned: [Self.user(1, "ada", policy: before)],
            policies: ["admins", "staff"])
        #expect(names(plan) == ["update ada policy"])
        #expect(plan.lostPolicies == (isLost ? 1 : 0) && plan.losses == (isLost ? 1 : 0))
    }

    /// Nobody knows whether the address has changed, so the factor and the recoveries stay.
    @Test func unreadableAddressIsNoChange() {
        let ada = Self.user(1, "ada", email: "sealed:1:AAAA", isUnreadable: true)
        let planned = plan([Self.record("1", "ada", email: "ada@example.com")], owned: [ada])
        #expect(planned.actions.isEmpty)
        #expect(
            planned.conflicts.map(\.message) == ["email: the master key file does not open an address of the user ada"])
    }
}
