import Testing

@testable import Daemon

@Suite struct MailSettingsTests {
    private func said(against mail: String) -> [String] { complaints(below: "mail:\n" + mail) }

    @Test func incompleteMailSettingsAreRefused() {
        let server = "  url: smtp://127.0.0.1\n  from: a@b.example\n"
        #expect(said(against: server) == [])
        #expect(said(against: server + "  username: u\n  password_file: p\n") == [])
        #expect(said(against: "  url: smtp://a.example\n").first?.contains("mail.from is missing") == true)
        #expect(
            said(against: "  from: a@b.example\n").first?.contains("mail.from has no effect without mail.url") == true)
        #expect(said(against: server + "  username: u\n").first?.contains("must be set together") == true)
        #expect(said(against: server + "  password_file: p\n").first?.contains("must be set together") == true)
    }

    @Test(arguments: [
        ("url: http://a.example", "t.yaml:5:8: mail.url must be smtp://"),
        ("url: smtp://u:p@a.example", "mail.url must be"),
        ("url: smtp://a.example/x", "mail.url must be"), ("from: nobody", "t.yaml:5:9: mail.from must be NAME@HOST"),
        ("from: zoë@example.com", "mail.from must be"), ("password: x", "password is not a setting in mail"),
    ])
    func invalidMailSettingsAreReported(_ line: String, _ message: String) {
        #expect(said(against: "  \(line)\n").contains { $0.contains(message) })
    }
}
