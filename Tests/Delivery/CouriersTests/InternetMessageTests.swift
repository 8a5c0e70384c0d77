import Bytes
import JSON
import TestSupport
import Testing
import World

@testable import Couriers

/// The format of mails: Python's email package must read the intended values.
@Suite(.mayBlock) struct InternetMessageTests {
    private struct Read {
        let from: String
        let sender: String
        let subject: String
        let text: String
        let fields: [String]
        let image: String?
        let defects: Int64
    }

    private let script = """
        import email, email.policy, json, sys
        with open(sys.argv[1], "rb") as f:
            m = email.message_from_binary_file(f, policy=email.policy.default)
        a = m["From"].addresses[0]
        print(json.dumps({"from": a.addr_spec, "sender": a.display_name, "subject": str(m["Subject"]),
            "text": m.get_body(("plain",)).get_content(), "fields": ["%s: %s" % x for x in m.items()],
            "image": [p.get_content().hex() + " " + str(p["Content-Disposition"]) for p in m.walk()
                if p.get_content_type() == "image/png"],
            "defects": sum(len(p.defects) + sum(len(v.defects) for v in p.values()) for p in m.walk())}))
        """

    private func message(
        subject: String = "Ihr Code", sender: String? = "Shop", from: String = "login@example.com", text: String = "a\n"
    ) throws -> InternetMessage {
        InternetMessage(
            from: try #require(MailAddress(from)), senderName: sender, to: "bob@example.org", subject: subject,
            date: try #require(Timestamp(rfc3339: "2026-11-22T01:02:03.456Z")), id: "abc@example.com", language: "de",
            text: text)
    }

    private func read(_ message: InternetMessage) async throws -> Read {
        let bytes = message.bytes()
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false) {
            #expect(line.utf8.count <= 76)
            #expect(line.utf8.allSatisfy { (0x20...0x7e).contains($0) })
        }
        let directory = try TemporaryDirectory()
        try TextFile.write(bytes, to: directory("mail"))
        let ended = try await Child.run("/usr/bin/python3", ["-c", script, directory("mail")])
        let object = try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
        let text = { (name: String) in try #require(object[name]?.string) }
        return Read(
            from: try text("from"), sender: try text("sender"), subject: try text("subject"), text: try text("text"),
            fields: object["fields"]?.array?.compactMap(\.string) ?? [],
            image: object["image"]?.array?.first?.string, defects: object["defects"]?.integer ?? -1)
    }

    @Test func eachHeaderFieldAppearsOnce() async throws {
        let read = try await read(try message())
        #expect(
            read.fields.sorted() == [
                "Auto-Submitted: auto-generated", "Content-Language: de", "Content-Transfer-Encoding: quoted-printable",
                "Content-Type: text/plain; charset=\"UTF-8\"", "Date: Sun, 22 Nov 2026 01:02:03 +0000",
                "From: Shop <login@example.com>", "MIME-Version: 1.0", "Message-ID: <abc@example.com>",
                "Subject: Ihr Code", "To: bob@example.org",
            ])
        #expect(read.defects == 0)
    }

    @Test(arguments: [
        "Ihr Anmeldecode für Bücher & Mehr", "ASCII", "a =?UTF-8?Q?x?= b", "日本語の店で使うコードをお送りします、どうぞよろしくお願いします",
        "🧑🧒 family", "\"quoted\" \\ <x@y.z>, (c); [d]", "_=?", "é",
        "an ASCII subject that is much longer than a line and has to be folded somewhere between its words, twice perhaps",
        "NoSpacesInThisSubjectAtAllSoThatItCannotBeFoldedAnywhere_äöü_ButGoesOnAndOnAndOnAndOnAndOnAndOnAndOn",
        String(repeating: "NoSpacesAndAllOfItASCII", count: 50), "short " + String(repeating: "x", count: 68),
        "two  spaces", " leading", "trailing ",
    ])
    func textRoundTripsThroughAMail(_ text: String) async throws {
        let read = try await read(
            try message(subject: text, sender: text, text: "\(text)\n\n.\nFrom x\n\(text) \nend=\n"))
        #expect(read.subject == text)
        // Python puts spaces between the encoded words of a name, against RFC 2047 §6.2, and merges several spaces.
        #expect(read.sender.filter { $0 != " " } == text.filter { $0 != " " })
        #expect(read.from == "login@example.com")
        #expect(read.text == "\(text)\n\n.\nFrom x\n\(text) \nend=\n")
        #expect(read.defects == 0)
    }

    @Test(arguments: [0, 1, 56, 57, 58, 3000]) func imageFollowsTheText(_ count: Int) async throws {
        let image = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var mail = try message(text: "Grüße = --=_twoefay_part\n--=_twoefay_part\n")
        mail.image = InternetMessage.Image(name: "activation.png", png: image)
        let read = try await read(mail)
        #expect(read.text == "Grüße = --=_twoefay_part\n--=_twoefay_part\n" && read.defects == 0)
        #expect(read.image == "\(Hex.encode(image)) inline; filename=\"activation.png\"")
    }

    @Test func longLinesAreFolded() async throws {
        let long =
            String(repeating: "äöü=x ", count: 300) + "\n" + String(repeating: "x", count: 76) + "\n"
            + String(repeating: "y", count: 77) + "\n"
        #expect(try await read(try message(text: long)).text == long)
    }

    /// Values are cleaned when they arrive. Even without that, no value can leave its field.
    @Test func headerInjectionIsPrevented() throws {
        let evil = "x\r\nBcc: all@example.com\r\n\r\nbody"
        let message = try message(subject: evil, sender: evil)
        let text = String(decoding: message.bytes(), as: UTF8.self)
        #expect(!text.contains("\r\nBcc:"))
        let head = text.split(separator: "\r\n\r\n", maxSplits: 1).first ?? ""
        #expect(head.split(separator: "\r\n").count { !$0.hasPrefix(" ") } == 10)
    }

    @Test func senderNameFromTheSettingsWins() async throws {
        #expect(try await read(try message(from: "Anmeldung <a@b.example>")).sender == "Anmeldung")
        #expect(try await read(try message(sender: nil)).sender == "")
    }

    @Test(arguments: [
        ("login@example.com", "login@example.com", nil as String?), ("Login <a@b.example>", "a@b.example", "Login"),
        ("\"Login, please\" <a@b.example>", "a@b.example", "Login, please"), ("<a@b.example>", "a@b.example", nil),
        ("Zoë <a@b.example>", "a@b.example", "Zoë"),
    ])
    func validSendersAreParsed(_ text: String, _ address: String, _ name: String?) throws {
        let sender = try #require(MailAddress(text))
        #expect(sender.address == address)
        #expect(sender.name == name)
        #expect(sender.domain == address.split(separator: "@")[1])
    }

    @Test(arguments: [
        "", "a", "a@b", "a@b.example, c@d.example", "x\r\n <a@b.example>", "zoë@example.com", "<a@b.example",
        "Login a@b.example",
    ])
    func malformedSendersAreRefused(_ text: String) { #expect(MailAddress(text) == nil) }

    /// Dates in the format of RFC 5322 §3.3, with their correct weekdays.
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 +0000"),
        ("2024-02-29T23:59:59Z", "Thu, 29 Feb 2024 23:59:59 +0000"),
        ("2026-12-31T12:00:00Z", "Thu, 31 Dec 2026 12:00:00 +0000"),
        ("2026-11-28T12:00:00Z", "Sat, 28 Nov 2026 12:00:00 +0000"),
    ])
    func dateHasTheRFC5322Form(_ moment: String, _ text: String) throws {
        #expect(InternetMessage.text(of: try #require(Timestamp(rfc3339: moment))) == text)
    }
}
