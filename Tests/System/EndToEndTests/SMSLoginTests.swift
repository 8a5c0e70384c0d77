import Bytes
import JSON
import TestSupport
import Testing
import World

/// Logins with codes that third-party gateways delivered as text messages.
@Suite("A code by text message", .timeLimit(.minutes(15)), .mayBlock) struct SMSLoginTests {
    private static let german = " ist Ihr Anmeldecode für Bücher & Mehr, 5 Minuten gültig. Bitte nicht weitergeben."
    private static let english = " is your login code for Bücher & Mehr, valid for 5 minutes. Do not share it."

    private func shop(_ fixture: Fixture) async throws -> APIClient {
        try await fixture.website("shop", ["--display-name", "Bücher & Mehr"])
    }

    /// Logs in two users with different languages.
    ///
    /// - Parameter text: returns the message of a number, counted from 1.
    private func logIn(
        _ fixture: Fixture, _ shop: APIClient, numbers: [String] = ["+4915112345671", "+4915112345672"],
        arrived text: (Int) async throws -> String
    ) async throws {
        let people = [("bob.german", "de-DE, en;q=0.5", Self.german), ("eve.english", "en", Self.english)]
        for (index, (name, language, words)) in people.enumerated() {
            try await shop.register(
                name, with: ["phone": .string(numbers[index]), "language": .string(language)])
            // Five minutes, and some time for a slow machine.
            let login = try await CodeLogin(shop, name, ["expires_in": 345])
            #expect(login.asked["login"] == "unverified" && login.factor == "sms")
            let text = try await text(index + 1)
            let code = try #require(text.codeOfAText, "\(text)")
            #expect(text == code + words)
            try await fixture.relay.logged("event=sms.accepted challenge=\(login.challenge)")
            #expect(try await login.result().steps == "sms sent")
            try await login.succeeds(by: "sms", worth: "restricted", code)
            #expect(try await login.handIn(code).status == 409)
        }
    }

    @Test(
        .enabled(if: RunningKannel.isInstalled, "Kannel is not installed"),
        arguments: [(StoreKind.file, "GET"), (.mariadb, "POST")])
    func codeSentThroughKannelLogsIn(_ kind: StoreKind, _ method: String) async throws {
        let kannel = try await RunningKannel()
        let files = try TemporaryDirectory()
        try TextFile.write("\(RunningKannel.password)\n", to: files("password"))
        try await Fixture.run(kind) { text throws in
            try text.set(
                "sms.gateways",
                to: "[{name: kannel, kind: kannel, url: \"\(kannel.url)\", username: \(RunningKannel.username), "
                    + "password_file: \(files("password")), from: Shop, method: \(method)}]")
            try text.set("sms.allow", to: "[\"+49\"]")
        } _: { fixture in
            try await logIn(fixture, try await shop(fixture)) { number in
                let arrived = try await kannel.arrived(number)
                #expect(arrived.from == "Shop" && arrived.to == "+491511234567\(number)")
                #expect(arrived.coding == "text")
                return arrived.text
            }
        }
    }

    /// Sets an SMPP gateway in the settings; a third-party program answers.
    private func gateway(_ port: UInt16, mode: String, _ files: TemporaryDirectory, in text: inout String) throws {
        try TextFile.write("secret08\n", to: files("password"))
        try text.set(
            "sms.gateways",
            to: "[{name: centre, kind: smpp, address: \"127.0.0.1:\(port)\", tls: false, system_id: relay, "
                + "password_file: \(files("password")), from: Shop, mode: \(mode)}]")
        try text.set("sms.allow", to: "[\"+49\"]")
    }

    /// Debian's libnet-smpp-perl, with a session that sends and gets receipts.
    @Test(arguments: [StoreKind.file, .mariadb]) func codeSentThroughNetSMPPLogsIn(_ kind: StoreKind) async throws {
        let centre = try PerlGateway.start()
        let port = try #require(UInt16(try await centre.line(.output, with: "port ").dropFirst(5)))
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try gateway(port, mode: "transceiver", files, in: &text)
        } _: { fixture in
            try await logIn(fixture, try await shop(fixture)) { number in
                let line = try await centre.line(.output, with: "submit ", number: number)
                #expect(line.hasPrefix("submit 5 0 Shop 1 1 491511234567\(number) "), "\(line)")
                return try #require(line.split(separator: " ").last.flatMap { Self.read(String($0)) }, "\(line)")
            }
            // Receipts for both messages arrived.
            try await fixture.relay.logged("event=sms.receipt", number: 2)
        }
        let ended = await centre.ended()
        #expect(ended.status == 0 && ended.output.hasSuffix("unbind\n"), "\(ended)")
    }

    /// Decodes the GSM alphabet (23.038), as far as these texts need it.
    private static func read(_ hexadecimal: String) -> String? {
        guard let bytes = Hex.decode(hexadecimal) else { return nil }
        return String(decoding: bytes, as: UTF8.self).replacing("\u{7e}", with: "ü")
    }

    /// Kannel's test gateway, with a session that only sends.
    @Test(.enabled(if: KannelSMSC.isInstalled, "Kannel's test gateway is not installed"))
    func codeSentThroughKannelsSMSCLogsIn() async throws {
        let centre = try await KannelSMSC()
        let files = try TemporaryDirectory()
        try await Fixture.run { text throws in
            try gateway(centre.port, mode: "transmitter", files, in: &text)
        } _: { fixture in
            try await logIn(fixture, try await shop(fixture)) { number in
                try await centre.text(number).replacing("\u{7e}", with: "ü")
            }
        }
    }
}
