import Bytes
import Crypto
import Directory
import TestSupport
import Testing
import World

@testable import DirectorySources

/// The users of a real slapd.
@Suite(.timeLimit(.minutes(10)), .mayBlock, .enabled(if: Slapd.canRun)) struct LDAPSourceTests {
    private static let admin = LDAPServer.Account(dn: Slapd.admin, password: Secret(Array(Slapd.password.utf8)))
    private static let reader = LDAPServer.Account(
        dn: "cn=reader,\(Slapd.suffix)", password: Secret(Array("reader".utf8)))

    private func source(
        _ slapd: Slapd, url: String? = nil, authority: String? = nil, isPlain: Bool = false,
        as account: LDAPServer.Account? = admin, base: String = Slapd.suffix,
        filter: String = "(objectClass=inetOrgPerson)", mapping: DirectoryMapping = .standard,
        groups: [LDAPSource.Group] = [], user: String? = nil, pageSize: Int = 500, limits: LDAPLimits = LDAPLimits()
    ) -> LDAPSource {
        LDAPSource(
            LDAPServer(
                urls: [url ?? slapd.secureURL], authority: authority ?? slapd.authority, isPlain: isPlain,
                account: account), base: base, filter: filter, mapping: mapping, groups: groups, user: user,
            pageSize: pageSize, limits: limits, time: SystemTime())
    }

    private func failure(_ source: LDAPSource) -> DirectoryFailure? {
        do throws(DirectoryFailure) {
            _ = try source.read()
            return nil
        } catch {
            return error
        }
    }

    private func names(_ content: DirectoryContent) -> [String] { content.records.map(\.username).sorted() }

    @Test func usersAreReadOverTLS() async throws {
        let slapd = try await Slapd()
        try await slapd.add(
            "ada",
            [
                ("mail", "ada@example.org"), ("mobile", "+49 151 12345678"), ("displayName", "Ada Lovelace"),
                ("preferredLanguage", "en"),
            ])
        let record = try #require(try source(slapd).read().records.first)
        #expect(record.username == "ada" && record.email == "ada@example.org" && record.phone == "+4915112345678")
        #expect(record.displayName == "Ada Lovelace" && record.language == "en")
        // RFC 4530 §2.1: a UUID in its text form.
        #expect(record.id.split(separator: "-").map(\.count) == [8, 4, 4, 4, 12])
        #expect(try source(slapd, url: slapd.url, isPlain: true).read().count == 1)
        #expect(
            failure(source(slapd, url: slapd.url))?.message
                == "url \(slapd.url) has no TLS; write ldaps://127.0.0.1, or insecure: true to read without TLS")
    }

    @Test func manyUsersAreReadInPages() async throws {
        // Without pages, this server returns at most ten entries.
        let slapd = try await Slapd(limits: "sizelimit size.soft=10 size.hard=10 size.pr=10 size.prtotal=unlimited")
        let expected = (0..<35).map { "user\($0 + 100)" }
        try await slapd.apply(
            expected.map { "dn: uid=\($0),\(Slapd.people)\nobjectClass: inetOrgPerson\nuid: \($0)\ncn: x\nsn: x\n" }
                .joined(separator: "\n"))
        #expect(names(try source(slapd, as: Self.reader, pageSize: 10).read()) == expected)
        let refused = failure(source(slapd, as: Self.reader, pageSize: 10, limits: LDAPLimits(entries: 34)))
        #expect(refused?.message == "the directory has more than 34 entries")
    }

    @Test func answerThatTheServerCutsOffIsRefused() async throws {
        let slapd = try await Slapd(limits: "sizelimit size.soft=3 size.hard=3 size.pr=3 size.prtotal=3")
        for name in ["a", "b", "c", "d", "e"] { try await slapd.add(name) }
        let refused = failure(source(slapd, as: Self.reader, pageSize: 2))
        #expect(
            refused?.message.hasPrefix("the server returned only a part of the entries") == true, "\(refused as Any)")
    }

    @Test func serverThatDiesBetweenTwoPagesReturnsNothing() async throws {
        let slapd = try await Slapd()
        for name in ["a", "b", "c", "d"] { try await slapd.add(name) }
        let server = LDAPServer(urls: [slapd.secureURL], authority: slapd.authority, account: Self.admin)
        let connection = try LDAPConnection(server, limits: LDAPLimits(), time: SystemTime())
        var seen = 0
        #expect(throws: LDAPFailure.self) {
            try connection.search(
                "(uid=*)", below: Slapd.suffix, attributes: ["uid"], pageSize: 2
            ) { _ in
                seen += 1
                if seen == 2 { slapd.killAndWait() }
            }
        }
        #expect(seen == 2)
    }

    @Test func groupsAreComparedByTheServer() async throws {
        let slapd = try await Slapd()
        for name in ["ada", "bob", "carl"] { try await slapd.add(name) }
        try await slapd.addGroup("admins", ["ada"])
        try await slapd.addGroup("staff \\28all\\29", ["ada", "bob"])
        // The server ignores case and blanks of a DN, and escapes within it.
        let groups = [
            LDAPSource.Group(filter: LDAPSource.Group.members(of: "CN=Admins, dc=example,dc=org"), policy: "admins"),
            LDAPSource.Group(filter: LDAPSource.Group.members(of: "cn=staff (all),\(Slapd.suffix)"), policy: "staff"),
            LDAPSource.Group(filter: LDAPSource.Group.members(of: "cn=nobody,\(Slapd.suffix)"), policy: "nobody"),
        ]
        let content = try source(slapd, groups: groups).read()
        #expect(content.members == [1, 2, 0])
        let policies = content.records.sorted { $0.username < $1.username }
        #expect(policies.map(\.policy) == ["admins", "staff", nil])
    }

    /// Swift treats both ids as equal, but they are those of two users.
    @Test func policyBelongsToTheBytesOfAnID() async throws {
        let slapd = try await Slapd()
        try await slapd.add("ada", [("description", "\u{e9}")])
        try await slapd.add("bob", [("description", "e\u{301}")])
        var mapping = DirectoryMapping.standard
        mapping.id = "description"
        let groups = [LDAPSource.Group(filter: "(uid=ada)", policy: "admins")]
        let records = try source(slapd, mapping: mapping, groups: groups).read().records
        #expect(records.sorted { $0.username < $1.username }.map(\.policy) == ["admins", nil])
    }

    @Test func valuesThatCannotBeUsedLeaveOutTheirEntry() async throws {
        let slapd = try await Slapd()
        try await slapd.add("ada", [("mail", "ada@example.org")])
        try await slapd.add("bob", [("displayName", "\u{1B}[2J\u{202E}")])
        try await slapd.add("carl", [("displayName", String(repeating: "x", count: 1025))])
        try await slapd.apply(
            """
            dn: uid=dora,\(Slapd.people)
            objectClass: inetOrgPerson
            cn: dora
            sn: dora
            preferredLanguage: en
            jpegPhoto:: /9j/

            """)
        let content = try source(slapd).read()
        #expect(names(content) == ["ada", "dora"])
        #expect(content.conflicts.count == 2 && content.unusableIDs.count == 2 && !content.hasUnknownIDs)
    }

    // MARK: Attacks

    /// Each name would match other entries, or end the filter, if it were not escaped.
    @Test func usernameCannotChangeTheSearch() async throws {
        let slapd = try await Slapd()
        for name in ["ada", "bob"] { try await slapd.add(name) }
        for name in [
            "*", "a*", "ada)(uid=*", "*)(|(uid=*", "ada)(objectClass=*))(&(uid=ada", "\\61da", "ada\u{0}", ")", "(",
            "ada\\", "a\u{301}",
        ] {
            #expect(try source(slapd, user: name).read().count == 0, "\(name)")
        }
        #expect(names(try source(slapd, user: "ada").read()) == ["ada"])
    }

    // MARK: Failures

    @Test func certificateOfAnotherAuthorityIsRefused() async throws {
        let slapd = try await Slapd()
        let other = slapd.directory("other.pem")
        try TextFile.write(TestCertificates().websites.certificatePEM(), to: other)
        let refused = failure(source(slapd, authority: other))
        #expect(refused?.next.hasPrefix("Check that 'ca' names") == true, "\(refused as Any)")
        #expect(failure(source(slapd, authority: slapd.directory("none.pem")))?.message.contains("none.pem") == true)
        // The password was sent to nobody.
        #expect(!slapd.log.contains("BIND dn"))
    }

    @Test func certificateOfAnotherHostIsRefused() async throws {
        let slapd = try await Slapd(names: ["ldap.example.org"])
        let refused = failure(source(slapd))
        #expect(refused?.next.contains("the host in 'url' is a name in it") == true, "\(refused as Any)")
        #expect(!slapd.log.contains("BIND dn"))
    }

    @Test func wrongAccountIsRefused() async throws {
        let slapd = try await Slapd()
        for (dn, password) in [(Slapd.admin, "wrong"), ("cn=nobody", Slapd.password), (Slapd.admin, "")] {
            let account = LDAPServer.Account(dn: dn, password: Secret(Array(password.utf8)))
            let refused = failure(source(slapd, as: account))
            #expect(refused?.message.hasPrefix("the bind failed") == true, "\(dn): \(refused as Any)")
        }
    }

    @Test func wrongBaseAndFilterAreRefused() async throws {
        let slapd = try await Slapd()
        #expect(failure(source(slapd, base: "dc=nowhere"))?.message.hasPrefix("the search failed") == true)
        #expect(failure(source(slapd, filter: "(uid="))?.message.hasPrefix("the search cannot be sent") == true)
    }

    @Test func serverThatIsGoneIsReported() async throws {
        let slapd = try await Slapd()
        await slapd.stop()
        #expect(failure(source(slapd))?.next.contains("accepts connections") == true)
    }
}
