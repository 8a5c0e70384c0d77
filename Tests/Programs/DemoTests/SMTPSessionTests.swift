import Testing

@testable import Demo

struct SMTPSessionTests {
    private func answers(_ session: inout SMTPSession, _ text: String) -> [String] {
        String(decoding: session.take(text.utf8), as: UTF8.self).split(separator: "\r\n").map { String($0.prefix(3)) }
    }

    @Test func mailIsAcceptedInAnyFragments() {
        let said =
            "EHLO a\r\nMAIL FROM:<a@example.com> SIZE=9\r\nRCPT TO:<b@example.com>\r\nDATA\r\n"
            + "Subject: one\r\n two\r\n\r\nText\r\n..\r\n.\r\nQUIT\r\n"
        for size in [1, 2, 7, said.utf8.count] {
            var session = SMTPSession()
            var answered: [UInt8] = []
            var rest = Array(said.utf8)[...]
            while !rest.isEmpty {
                answered += session.take(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            let codes = String(decoding: answered, as: UTF8.self).split(separator: "\r\n").map { $0.prefix(3) }
            #expect(codes == ["250", "250", "250", "250", "250", "250", "354", "250", "221"], "\(size)")
            let mails = session.mails()
            #expect(mails.map(\.to) == ["b@example.com"] && mails.first?.subject == "one two")
            #expect(mails.first?.text == "Text\n.\n")
            #expect(session.isOver && session.mails().isEmpty)
        }
    }

    @Test func commandsOutOfOrderAreRefused() {
        var session = SMTPSession()
        #expect(
            answers(&session, "DATA\r\nRCPT TO:<b@example.com>\r\nMAIL TO:<a>\r\nAUTH PLAIN\r\nSTARTTLS\r\n")
                == ["503", "503", "501", "502", "502"])
        #expect(
            answers(&session, "MAIL FROM:<>\r\nMAIL FROM:<a@b>\r\nDATA\r\nRSET\r\nRCPT TO:<b@c>\r\n")
                == ["250", "501", "503", "250", "503"])
        #expect(session.mails().isEmpty)
    }

    /// A web page can make a browser send this request to the port, with a mail in its body.
    @Test(arguments: ["/", "/" + String(repeating: "x", count: 10_000)]) func httpRequestIsRefused(path: String) {
        var session = SMTPSession()
        let mail = "EHLO a\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.com>\r\nDATA\r\nText\r\n.\r\n"
        #expect(answers(&session, "POST \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n" + mail) == ["500"])
        #expect(session.isOver && session.mails().isEmpty)
        #expect(answers(&session, mail).isEmpty && session.mails().isEmpty)
    }

    /// A client's data uses limited memory, and the next mail is accepted.
    @Test func oversizedMailIsRefused() {
        var session = SMTPSession()
        _ = answers(&session, "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n")
        let line = String(repeating: "y", count: 1000) + "\r\n"
        for _ in 0..<(SMTPSession.longestMail / 1000 + 10) { #expect(answers(&session, line).isEmpty) }
        #expect(answers(&session, ".\r\n") == ["552"])
        #expect(session.mails().isEmpty)
        #expect(answers(&session, "MAIL FROM:<a@b>\r\n") == ["250"])
    }

    @Test(arguments: [
        ("plain", "plain"), ("=?UTF-8?Q?Gr=C3=BC=C3=9Fe_aus?= =?utf-8?b?S8O2bG4=?= jetzt", "Grüße ausKöln jetzt"),
        ("=?iso-8859-1?Q?a?=", "=?iso-8859-1?Q?a?="), ("=?UTF-8?X?a?=", "=?UTF-8?X?a?="), ("=??=", "=??="),
        ("=?", "=?"),
        ("a  b", "a  b"), ("", ""),
    ]) func encodedWordsAreDecoded(text: String, decoded: String) { #expect(EncodedWords.decoded(text) == decoded) }

    @Test(arguments: [("a=3D=\nb=C3=A4", "a=bä"), ("=", "="), ("=4", "=4"), ("=zz=41", "=zzA"), ("x=", "x=")])
    func quotedPrintableIsDecoded(text: String, decoded: String) {
        #expect(String(decoding: CaughtMail.unquoted(Array(text.utf8)), as: UTF8.self) == decoded)
    }

    @Test func emptyMailIsRead() {
        for content in ["", "\n", "x\n", ":\n\n", " y\n\n", "Content-Transfer-Encoding: base64\n\n!!\n"] {
            let mail = CaughtMail(Array(content.utf8), to: "a@b")
            #expect(mail.to == "a@b" && mail.subject == "" && mail.from == "")
        }
    }
}
