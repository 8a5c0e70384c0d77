import Testing

@testable import Storage

struct StorageURLTests {
    @Test func sqlitePathIsRelativeToTheSettings() throws {
        #expect(try StorageURL("sqlite:a.db") == .sqlite(path: "a.db"))
        #expect(try StorageURL("sqlite:a.db", relativeTo: "/etc/twoefay") == .sqlite(path: "/etc/twoefay/a.db"))
        #expect(try StorageURL("sqlite:/var/a b.db", relativeTo: "/etc") == .sqlite(path: "/var/a b.db"))
        #expect(try StorageURL("sqlite::memory:", relativeTo: "/etc") == .memory)
    }

    @Test func serverURLIsParsed() throws {
        let url = try StorageURL(
            "mariadb://re%40lay:p%3Aw%2Fd@one,two:3307,[::1]:3308,[fe80::1]/db?socket=run/s.sock&ssl_ca=ca.pem",
            relativeTo: "/etc/twoefay")
        #expect(
            url
                == .mariadb(
                    StorageURL.Server(
                        hosts: [
                            .init(name: "one", port: 3306), .init(name: "two", port: 3307),
                            .init(name: "::1", port: 3308), .init(name: "fe80::1", port: 3306),
                        ], user: "re@lay", database: "db", password: "p:w/d", passwordFile: nil,
                        socket: "/etc/twoefay/run/s.sock", authority: "/etc/twoefay/ca.pem")))
    }

    @Test func serverURLTextOmitsThePassword() throws {
        let text = "mariadb://relay:hidden@one,two:3307/db"
        #expect("\(try StorageURL(text))" == "mariadb://relay@one:3306,two:3307/db")
        #expect("\(try StorageURL("sqlite::memory:"))" == "sqlite::memory:")
    }

    private static let wrong: [(text: String, says: String)] = [
        ("postgres://a@b/c", "storage must begin with sqlite: or mariadb://"),
        ("", "storage must begin with sqlite: or mariadb://"),
        ("sqlite:", "sqlite: needs a path, as in sqlite:twoefay.db"),
        ("sqlite:///var/a.db", "sqlite: takes a path, as in sqlite:/var/lib/twoefay/twoefay.db, not //"),
        ("mariadb://host/db", "mariadb:// needs a user, as in mariadb://twoefay@localhost/twoefay"),
        ("mariadb://:pw@host/db", "the user before @ is empty"),
        ("mariadb://a@host", "mariadb:// needs one database, as in mariadb://twoefay@localhost/twoefay"),
        ("mariadb://a@host/", "mariadb:// needs one database, as in mariadb://twoefay@localhost/twoefay"),
        ("mariadb://a@host/b/c", "mariadb:// needs one database, as in mariadb://twoefay@localhost/twoefay"),
        ("mariadb://a@/db", "a host is empty"),
        ("mariadb://a@one,,two/db", "a host is empty"),
        ("mariadb://a@one:0/db", "0 is not a port"),
        ("mariadb://a@::1/db", "::1: an IPv6 address stands in brackets, as in [::1]:3306"),
        ("mariadb://a@[::1]x/db", "[::1]x is not a host"),
        ("mariadb://a:%zz@one/db", "a % in the password is not followed by two hexadecimal digits"),
        ("mariadb://a:%+f@one/db", "a % in the password is not followed by two hexadecimal digits"),
        ("mariadb://a:%ff@one/db", "the password is not UTF-8 text"),
        ("mariadb://a@one/d%00b", "the database is not UTF-8 text"),
        ("mariadb://a@one/db?x=1", "x is unknown; there are socket, password_file and ssl_ca"),
        ("mariadb://a@one/db?socket=", "socket needs a value"),
        ("mariadb://a:b@one/db?password_file=f", "a password and password_file are given: only one can be meant"),
    ]

    @Test(arguments: wrong.indices)
    func malformedURLIsReportedWithoutThePassword(_ index: Int) {
        let sample = Self.wrong[index]
        #expect(throws: StorageURL.Malformed(description: sample.says)) { try StorageURL(sample.text) }
    }
}
