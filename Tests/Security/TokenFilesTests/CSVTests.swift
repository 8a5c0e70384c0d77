import Bytes
import Testing
import TokenFiles

@Suite struct CSVTests {
    private func read(_ text: String) throws -> [Seed] { try CSVTokenReader.read(Array(text.utf8)).seeds }

    private func messages(_ text: String) -> [String] { messages(Array(text.utf8)) }

    private func messages(_ bytes: [UInt8]) -> [String] {
        do throws(SeedFaults) {
            _ = try CSVTokenReader.read(bytes)
            return []
        } catch {
            return error.faults.map { "\($0.line): \($0.message)" }
        }
    }

    private let secret = Array("12345678901234567890".utf8)

    @Test func tokenTableIsRead() throws {
        let seeds = try read(
            """
            username,kind,secret,algorithm,digits,period,counter,serial
            ana,hotp,hex:3132333435363738393031323334353637383930,,8,,7,A-1
            "Ben, ""the"" 2nd",totp,base32:GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ,SHA256,,60,,
            ,TOTP,"Base32:gezd gnbv gy3t qojq gezd gnbv gy3t qojq",hmac-sha512,7,,,00042

            """)
        #expect(seeds.allSatisfy { $0.secret.reveal() == secret })
        #expect(seeds.map(\.username) == ["ana", "Ben, \"the\" 2nd", nil])
        #expect(seeds.map(\.serial) == ["A-1", nil, "00042"])
        #expect(seeds.map(\.kind) == [.hotp(counter: 7), .totp(period: 60), .totp(period: 30)])
        #expect(seeds.map(\.hash) == [.sha1, .sha256, .sha512])
        #expect(seeds.map(\.digits) == [8, 6, 7])
        #expect(seeds.map(\.line) == [2, 3, 4])
    }

    /// The file has a byte order mark, CRLF, semicolons, a line end inside a field, and no end of
    /// the last line.
    @Test func spreadsheetCSVIsRead() throws {
        let text =
            "kind;secret;Encoding; username\r\n\r\nhotp;3132333435363738393031323334353637383930;hex;ana\r\n"
            + "hotp;3132333435363738393031323334353637383930;HEX;\"a\nb\"\r\nhotp;GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ;base32;c"
        let seeds = try CSVTokenReader.read([0xef, 0xbb, 0xbf] + Array(text.utf8)).seeds
        #expect(seeds.map(\.username) == ["ana", "a\nb", "c"])
        #expect(seeds.map(\.line) == [3, 4, 6])
        #expect(seeds.allSatisfy { $0.secret.reveal() == secret })
    }

    @Test(arguments: [
        ("totp,,u,,,,", "2: secret: is missing"),
        ("otp,hex:31,u,,,,", "2: kind: must be totp or hotp"),
        ("totp,31,u,,,,", "2: secret: write hex: or base32:"),
        ("totp,hex:3,u,,,,", "2: secret: must be hex"),
        ("totp,base32:1,u,,,,", "2: secret: must be base32"),
        ("totp,hex:31,u,md5,,,", "2: algorithm: must be"),
        ("totp,hex:31,u,,5,,", "2: digits: must be"),
        ("totp,hex:31,u,,six,,", "2: digits: must be a whole number"),
        ("totp,hex:31,u,,,0,", "2: period: must be"),
        ("totp,hex:31,u,,,,1", "2: counter: must be empty"),
        ("hotp,hex:31,u,,,30,", "2: period: must be empty"),
        ("hotp,hex:31,u,,,,-1", "2: counter: must be a whole number"),
        ("hotp,hex:31,u,,,,9223372036854775807", "2: counter: must be at most 281474976710656"),
        ("hotp,hex:31,,,,,", "2: username or serial must be given"),
        ("hotp,hex:31,u", "2: has 3 fields, but the first line names 7"),
        ("hotp,\"hex:31,u,,,,", "2: a quote opens here"),
        ("hotp,\"hex:31\"x,u,,,,", "2: text follows the closing quote"),
    ]) func csvFaultNamesItsLine(row: String, message: String) {
        let found = messages("kind,secret,username,algorithm,digits,period,counter\n\(row)\n")
        #expect(found.count == 1 && found[0].hasPrefix(message), "\(found)")
    }

    @Test func csvFileIsReadCompletelyOrNotAtAll() {
        let found = messages("kind,secret,username\nhotp,hex:31,a\nx,hex:31,b\nhotp,hex:31,c\nhotp,,d\n")
        #expect(found == ["3: kind: must be totp or hotp", "5: secret: is missing"])
    }

    @Test func columnsAreNamedByTheFirstLine() {
        #expect(messages("") == ["1: the file is empty; line 1 must name the columns"])
        #expect(messages("ana,hotp,hex:31\n").first?.hasPrefix("1: ana is not a column") == true)
        // The file starts with a token where the column names are expected.
        #expect(
            messages("hex:3132333435363738,ana,hotp\n").first?.hasPrefix("1: field 1 of this line is not a column")
                == true)
        #expect(
            messages("secret,GEZDGNBVGY3TQOJQ,hotp\n").first?.hasPrefix("1: field 2 of this line is not a column")
                == true)
        #expect(messages("kind,sekret\n").first?.hasSuffix("; did you mean secret?") == true)
        #expect(messages("kind,kind\n") == ["1: the column kind appears twice"])
        #expect(messages("kind,username\n") == ["1: the column secret is missing"])
        #expect(messages("kind,secret\n") == ["1: the file has column names but no token"])
    }

    @Test func invalidUTF8IsRefused() {
        #expect(messages(Array("kind,secret\nhotp,".utf8) + [0xff, 0x0a]).first?.hasPrefix("2: not UTF-8") == true)
        #expect(messages([0]).count == 1)
        #expect(
            messages("kind,secret\nhotp,\(String(repeating: "a", count: 5000))\n").first?.contains("longer than")
                == true)
    }

    @Test func tokenOwnersAreRead() throws {
        let users = try CSVTokenReader.readMap(Array("username,serial\nana,1\nben,2\n".utf8))
        #expect(users == ["1": "ana", "2": "ben"])
        for (text, message) in [
            ("serial,username\n1,ana\n1,ben\n", "3: the serial 1 appears twice"),
            ("serial,username\n1,\n", "2: both serial and username must be given"),
            ("serial\n1\n", "1: the column username is missing"),
        ] {
            let faults = #expect(throws: SeedFaults.self) { try CSVTokenReader.readMap(Array(text.utf8)) }
            #expect(faults?.faults.map { "\($0.line): \($0.message)" } == [message])
        }
    }
}
