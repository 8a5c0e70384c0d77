import TestSupport
import Testing

/// The settings with which a relay sends codes to the test's servers.
enum Outgoing {
    /// Returns a gateway with Kannel's interface.
    static func gateway(_ name: String, _ url: String, _ files: TemporaryDirectory, _ more: String = "") -> String {
        "{name: \(name), kind: kannel, url: \"\(url)/cgi-bin/sendsms\", username: relay, "
            + "password_file: \(files("gateway.password"))\(more)}"
    }

    static func set(
        gateways: [String], allowing: String = "[\"+49\", \"+43\"]", limits: [String: Int] = [:],
        mail: TestMailServer? = nil, _ files: TemporaryDirectory, in text: inout String
    ) throws {
        try TextFile.write("foobar\n", to: files("gateway.password"))
        try text.set("sms.gateways", to: "[\(gateways.joined(separator: ", "))]")
        try text.set("sms.allow", to: allowing)
        for (name, limit) in limits { try text.set("sms.limits.\(name)", to: "\(limit)") }
        guard let mail else { return }
        try text.set("mail.url", to: "smtp://127.0.0.1:\(mail.port)")
        try text.set("mail.from", to: "login@shop.example.com")
    }
}

extension TestGateway {
    /// Starts a gateway that accepts everything, with Kannel's answer.
    static func taking() async throws -> TestGateway { try await TestGateway { _ in Self.taken } }

    static let taken = Answer.status(202, "0: Accepted for delivery")

    /// Returns the code of that message, counted from 1, as soon as it has arrived.
    func code(_ number: Int, _ location: SourceLocation = #_sourceLocation) async throws -> String {
        await isAsked(number)
        let text = asked[number - 1].query["text"] ?? ""
        return try #require(text.codeOfAText, "\(text)", sourceLocation: location)
    }
}

extension TestMailServer {
    /// Returns the code of that mail with a code, counted from 1, as soon as it has arrived. Mails that
    /// tell of a change have none; nothing says whether they come before or after.
    func code(_ number: Int, to address: String, _ location: SourceLocation = #_sourceLocation) async throws -> String {
        var (mails, codes) = (0, 0)
        while true {
            mails += 1
            let mail = try await mail(mails)
            guard let code = mail.data.replacing("\r\n", with: "\n").codeOfAMail else { continue }
            codes += 1
            guard codes == number else { continue }
            #expect(mail.to == ["<\(address)>"], sourceLocation: location)
            return code
        }
    }
}
