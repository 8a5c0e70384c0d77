import Directory
import Domain
import TestSupport
import Testing
import World

@testable import Daemon

/// The settings of sources of users.
@Suite struct DirectorySettingsTests {
    private static let least = """
        origin: https://login.example.com:8080
        listen: 0.0.0.0:8080
        storage: sqlite:twoefay.db
        directories:

        """

    private func read(_ text: String) throws -> [Settings.DirectorySettings] {
        try SettingsReader.read(Array((Self.least + text).utf8), file: "/etc/twoefay/t.yaml").directories.all
    }

    /// Returns the problems of one directory, without their positions.
    private func complaints(_ text: String) -> [String] {
        do throws(SettingsReader.Problems) {
            _ = try SettingsReader.read(Array((Self.least + text).utf8), file: "t.yaml")
            return []
        } catch {
            return error.all.map(\.message)
        }
    }

    private static let ldap = """
          - name: staff
            website: shop
            kind: active-directory
            url: ldaps://dc1.example.com ldaps://dc2.example.com
            base: dc=example,dc=com

        """

    @Test func defaultsAreThoseOfTheKind() throws {
        let directory = try #require(try read(Self.ldap).first)
        #expect(directory.mapping == .activeDirectory && directory.interval == 3600 && directory.disableLimit == 20)
        #expect(!directory.adopts && directory.mostEntries == 200_000)
        guard case .ldap(let ldap) = directory.kind else {
            Issue.record("not LDAP")
            return
        }
        #expect(ldap.urls == ["ldaps://dc1.example.com", "ldaps://dc2.example.com"])
        #expect(ldap.filter.contains("1.2.840.113556.1.4.803:=2") && !ldap.isPlain && ldap.account == nil)
    }

    @Test func everyKeyIsRead() throws {
        let directory = try #require(
            try read(
                """
                  - name: people
                    website: shop
                    kind: ldap
                    url: ldap://10.0.0.1:1389
                    ca: ca.pem
                    insecure: true
                    bind_dn: cn=reader
                    password_file: secret
                    base: ou=people
                    filter: (|(uid=*)(cn=*))
                    page_size: 100
                    timeout: 5
                    interval: none
                    disable_limit: 0
                    max_entries: 10
                    adopt: true
                    country: "+49"
                    lowercase: true
                    attributes: {id: nsUniqueId, username: cn, email: ~, phone: telephoneNumber}
                    groups:
                      - {group: "cn=admins", policy: {min_uv: biometric, factors: "push, totp"}}
                      - {filter: "(ou=staff)", policy: {lifetime: 60}}

                """
            ).first)
        #expect(directory.interval == 0 && directory.disableLimit == 0 && directory.mostEntries == 10)
        #expect(directory.adopts && directory.mapping.country == "+49" && directory.mapping.lowercases)
        #expect(
            directory.mapping.attributes == ["nsUniqueId", "cn", "telephoneNumber", "displayName", "preferredLanguage"])
        #expect(
            directory.groups == [
                .init(group: "cn=admins", filter: nil, policy: #"{"factors":"push, totp","min-uv":"biometric"}"#),
                .init(group: nil, filter: "(ou=staff)", policy: #"{"lifetime":"60"}"#),
            ])
    }

    @Test(arguments: [
        ("url: ldaps://dc1.example.com ldaps://dc2.example.com", "url: http://x", "url must be ldaps://HOST"),
        (
            "url: ldaps://dc1.example.com ldaps://dc2.example.com",
            "url: ldaps://dc1.example.com ldap://dc2.example.com",
            "url ldap://dc2.example.com has no TLS; write ldaps://dc2.example.com, or insecure: true"
        ),
        (
            "url: ldaps://dc1.example.com ldaps://dc2.example.com", "url: ldap://dc1.example.com:389",
            "write ldaps://dc1.example.com, or insecure: true"
        ),
        ("base: dc=example,dc=com", "", "base is missing"),
        ("website: shop", "website: Shop", "website must be 1 to 64 characters"),
        ("kind: active-directory", "kind: activedirectory", "did you mean active-directory?"),
        ("name: staff", "name: \"a b\"", "name must be 1 to 32"),
        ("base: dc=example,dc=com", "base: x\n    bind_dn: cn=a", "bind_dn and password_file must be set together"),
        ("base: dc=example,dc=com", "base: x\n    filter: (a=b)(c=d)", "filter must be in parentheses"),
        ("base: dc=example,dc=com", "base: x\n    fliter: (a=b)", "fliter is not a setting of kind active-directory"),
        ("base: dc=example,dc=com", "base: x\n    interval: 0", "interval must be none or a whole number"),
        ("base: dc=example,dc=com", "base: x\n    attributes: {username: ~}", "username is required"),
        (
            "base: dc=example,dc=com", "base: x\n    attributes: {email: \"a)(b\"}",
            "email must be the name of an attribute"
        ),
        ("base: dc=example,dc=com", "base: x\n    attributes: {mail: x}", "mail is not a value of a user"),
        ("base: dc=example,dc=com", "base: x\n    country: 49", "country must be a country code"),
        (
            "base: dc=example,dc=com", "base: x\n    groups: [{policy: {number: 6}}]",
            "a group needs either group or filter"
        ),
        ("base: dc=example,dc=com", "base: x\n    groups: [{group: a}]", "policy must contain keys"),
        (
            "base: dc=example,dc=com", "base: x\n    groups: [{group: a, policy: {devices: 1}}]",
            "devices is not a policy of a group"
        ),
        (
            "base: dc=example,dc=com", "base: x\n    groups: [{group: a, policy: {number: 3}}]",
            "number must be 0, 2 or 6"
        ),
    ])
    func mistakeIsNamed(line: String, instead: String, problem: String) {
        let text = Self.ldap.split(separator: "\n").map { row in
            row.contains(line) ? row.prefix { $0 == " " || $0 == "-" } + instead : row
        }.joined(separator: "\n")
        #expect(complaints(text + "\n").contains { $0.contains(problem) }, "\(complaints(text + "\n"))")
    }

    /// A sync accepts what `twoefayd --check` accepts: the password is read anew each time.
    @Test(arguments: ["", "\n", "one\ntwo\n", "a\u{7}b", "a\u{7f}"])
    func passwordMustBeOneLine(text: String) throws {
        let files = try TemporaryDirectory()
        try TextFile.write(text, to: files("password"))
        let keys = "    bind_dn: cn=reader\n    password_file: password\n"
        let settings = try SettingsReader.read(
            Array((Self.least + Self.ldap + keys).utf8), file: files("twoefay.yaml"))
        #expect { try settings.content(of: settings.directories.all[0], time: SystemTime()) } throws: {
            ($0 as? Failure)?.message
                == "\(files("password")): must hold a password in one line, and nothing else"
        }
    }

    @Test func twoDirectoriesOfOneNameAreRefused() {
        #expect(complaints(Self.ldap + Self.ldap).contains("two directories have the name staff"))
    }

    @Test func filesOfDirectoriesMayBeOpenedByTheDaemon() throws {
        let text =
            Self.least + Self.ldap + "    ca: /etc/ldap-ca/ca.pem\n    bind_dn: a\n    password_file: /run/pw/staff\n"
        let settings = try SettingsReader.read(Array(text.utf8), file: "/etc/twoefay/t.yaml")
        let paths = settings.openedPaths.map(\.path)
        #expect(paths.contains("/etc/ldap-ca/ca.pem") && paths.contains("/run/pw/staff"))
    }
}
