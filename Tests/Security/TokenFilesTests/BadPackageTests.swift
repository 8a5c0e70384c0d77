import Bytes
import TestSupport
import Testing
import TokenFiles
import World

/// Files that are no PSKC, or that contain unsupported or invalid values.
@Suite struct BadPackageTests {
    private func messages(_ text: String, _ key: PSKCKey? = nil) -> [String] {
        do throws(SeedFaults) {
            _ = try PSKCReader.read(Array(text.utf8), key: key, at: FigureTests.now)
            return []
        } catch {
            return error.faults.map { "\($0.line): \($0.message)" }
        }
    }

    private func package(_ inside: String, algorithm: String = "hotp", data: String = "", policy: String = "") -> String
    {
        """
        <KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc">
        <KeyPackage><Key Id="k" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:\(algorithm)">
        <AlgorithmParameters>\(inside)</AlgorithmParameters>
        <Data><Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret>\(data)</Data>
        <Policy>\(policy)</Policy>
        </Key></KeyPackage></KeyContainer>
        """
    }

    @Test func xmlEntitiesAreRefused() {
        let bomb = """
            <?xml version="1.0"?>
            <!DOCTYPE lolz [
            <!ENTITY a "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa">
            <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
            <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
            ]>
            <KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc">&c;</KeyContainer>
            """
        #expect(messages(bomb) == ["2: a document type is not allowed in a key package"])
        let outside = """
            <!DOCTYPE x SYSTEM "file:///etc/passwd"><KeyContainer Version="1.0"/>
            """
        #expect(messages(outside) == ["1: a document type is not allowed in a key package"])
        let undeclared = """
            <KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc">&a;</KeyContainer>
            """
        #expect(messages(undeclared) == ["1: not valid XML: undefined entity"])
    }

    @Test func xmlDepthAndSizeAreLimited() {
        let root = "<KeyContainer Version=\"1.0\" xmlns=\"urn:ietf:params:xml:ns:keyprov:pskc\">"
        #expect(messages(root + String(repeating: "<a>", count: 100_000)).first?.contains("more elements") == true)
        #expect(
            messages(root + "<KeyPackage>" + String(repeating: "<a/>", count: 2000)).first?.contains("more elements")
                == true)
        #expect(
            messages(root + "<KeyPackage><Key>" + String(repeating: "a", count: 100_000)).first?.contains("longer than")
                == true)
    }

    @Test(arguments: [
        ("", "not valid XML: no element found"), ("{}", "not valid XML: not well-formed"),
        ("<a/>", "not a key container of RFC 6030"),
        ("<KeyContainer Version=\"1.0\"/>", "the file has no key"),
        (
            "<KeyContainer xmlns=\"urn:ietf:params:xml:ns:keyprov:pskc:1.0\" Version=\"1.0\"/>",
            "not a key container of RFC 6030"
        ),
        ("<KeyContainer xmlns=\"urn:ietf:params:xml:ns:keyprov:pskc\"/>", "Version must be 1.0, but is missing"),
        ("<KeyContainer xmlns=\"urn:ietf:params:xml:ns:keyprov:pskc\" Version=\"1.0\"/>", "the file has no key"),
        (
            "<KeyContainer xmlns=\"urn:ietf:params:xml:ns:keyprov:pskc\" Version=\"1.0\">",
            "not valid XML: no element found"
        ),
    ]) func malformedPackageIsRefused(text: String, message: String) throws {
        let found = messages(text)
        #expect(found.count == 1 && found[0].contains(message), "\(found)")
    }

    @Test func invalidTOTPParametersAreReported() throws {
        let format = "<Suite>HMAC-SHA256</Suite><ResponseFormat Length=\"7\" Encoding=\"DECIMAL\"/>"
        let data =
            "<TimeInterval><PlainValue>60</PlainValue></TimeInterval><TimeDrift><PlainValue>1</PlainValue></TimeDrift>"
        let text = package(format, algorithm: "totp", data: data)
        let seed = try #require(try PSKCReader.read(Array(text.utf8), at: FigureTests.now).seeds.first)
        #expect(seed.kind == .totp(period: 60))
        #expect((seed.hash, seed.digits) == (.sha256, 7))
    }

    @Test func unusableSecretIsReported() {
        func refused(_ text: String, _ part: String, sourceLocation: SourceLocation = #_sourceLocation) {
            let found = messages(text)
            #expect(found.count == 1 && found[0].contains(part), "\(found)", sourceLocation: sourceLocation)
        }
        refused(package("", algorithm: "ocra"), "ocra is not supported")
        refused(package("<Suite>MD5</Suite>"), "its Suite, MD5")
        refused(package("<ResponseFormat Length=\"5\" Encoding=\"DECIMAL\"/>"), "6 to 8 digits")
        refused(package("<ResponseFormat Length=\"8\" Encoding=\"HEXADECIMAL\"/>"), "HEXADECIMAL")
        refused(package("<ResponseFormat Length=\"8\" Encoding=\"DECIMAL\" CheckDigits=\"true\"/>"), "check digit")
        refused(package("", data: "<Counter><PlainValue>-1</PlainValue></Counter>"), "Counter must be a whole number")
        refused(
            package("", data: "<Counter><PlainValue>99999999999999999999</PlainValue></Counter>"),
            "Counter must be a whole number")
        refused(
            package("", data: "<Counter><PlainValue>281474976710657</PlainValue></Counter>"), "Counter must be at most")
        refused(
            package("", algorithm: "totp", data: "<TimeInterval><PlainValue>0</PlainValue></TimeInterval>"), "from 1 to"
        )
        refused(
            package("", algorithm: "totp", data: "<TimeDrift><PlainValue>4</PlainValue></TimeDrift>"),
            "replace the token")
        refused(package("", policy: "<KeyUsage>Encrypt</KeyUsage>"), "KeyUsage")
        refused(package("", policy: "<PINPolicy PINUsageMode=\"Append\"/>"), "codes contain a PIN")
        refused(package("", policy: "<NumberOfTransactions>5</NumberOfTransactions>"), "must not be used")
        refused(package("", policy: "<ExpiryDate>soon</ExpiryDate>"), "ExpiryDate must be a time")
        #expect(messages(package("", policy: "<KeyUsage>Integrity</KeyUsage><KeyUsage>OTP</KeyUsage>")).isEmpty)
    }

    /// One invalid key refuses the whole file. The first twenty faults are listed.
    @Test func oneInvalidKeyRefusesTheFile() throws {
        let good = PSKCFigures.figure3.dropLast("</KeyContainer>".utf8.count)
        let bad = "<KeyPackage><Key Id=\"x\" Algorithm=\"urn:ietf:params:xml:ns:keyprov:pskc:hotp\"/></KeyPackage>"
        #expect(messages(good + bad + "</KeyContainer>").count == 1)
        let many = good + String(repeating: bad, count: 100) + "</KeyContainer>"
        let faults = #expect(throws: SeedFaults.self) {
            try PSKCReader.read(Array(many.utf8), at: FigureTests.now)
        }
        #expect((faults?.faults.count, faults?.count) == (20, 100))
    }

    // MARK: Encrypted files

    private static let shared = PSKCKey.shared(
        Secret([0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12]))

    @Test func nothingIsDecryptedWithoutAMAC() {
        let mac = "<ValueMAC>Su+NvtQfmvfJzF6bmQiJqoLRExc=\n                    </ValueMAC>"
        let noValueMAC = PSKCFigures.figure6.replacing(mac, with: "")
        #expect(noValueMAC != PSKCFigures.figure6)
        #expect(messages(noValueMAC, Self.shared).first?.contains("without a ValueMAC") == true)
        let noMethod = PSKCFigures.figure6.replacing("MACMethod", with: "MacMethod")
        #expect(messages(noMethod, Self.shared).first?.contains("no MACMethod") == true)
        let otherMethod = PSKCFigures.figure6.replacing("#hmac-sha1", with: "#hmac-md5")
        #expect(messages(otherMethod, Self.shared).first?.contains("hmac-md5") == true)
        let otherCipher = PSKCFigures.figure6.replacing("#aes128-cbc", with: "#tripledes-cbc")
        #expect(messages(otherCipher, Self.shared).first?.contains("tripledes-cbc") == true)
    }

    @Test func pbkdf2IterationsAreLimited() {
        let password = PSKCKey.password(Secret(utf8: "qwerty"))
        for (old, new) in [
            ("<IterationCount>1000", "<IterationCount>0"), ("<IterationCount>1000", "<IterationCount>99999999999"),
            ("<KeyLength>16", "<KeyLength>17"), ("<PRF/>", "<PRF Algorithm=\"urn:x#hmac-md5\"/>"),
            ("<Specified>Ej7", "<Specified>!!!"), ("#pbkdf2", "#pbkdf1"),
        ] {
            let changed = PSKCFigures.figure7.replacing(old, with: new)
            #expect(changed != PSKCFigures.figure7)
            #expect(messages(changed, password).count == 1, "\(new)")
        }
    }
}
