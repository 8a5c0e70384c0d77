import Bytes
import Crypto
import Glibc
import JSON
import TestSupport
import Testing
import TwoefayClient

@testable import Phone

/// The PIN over the wire: from `twoefay phone` to the relay, the website and the operator.
@Suite(.timeLimit(.minutes(15))) struct PINPhoneTests {
    private struct Scene {
        let relay: RunningRelay
        let shop: CurlCaller
        let owner: Owner

        init(_ kind: StoreKind) async throws {
            relay = try await RunningRelay.start(kind)
            try await relay.tool([
                "website", "add", "shop", "--out", relay.directory.path, "--number", "0", "--pin", "required",
            ])
            shop = relay.caller(
                certificatePath: relay.directory("shop.pem"), keyPath: relay.directory("shop.key"))
            owner = try Owner()
            let registered = try await shop.curl("POST", "/register", json: #"{"username":"alice"}"#)
            let uri = try #require(registered["activation"]?.object?["uri"]?.string, "\(registered)")
            let enrolled = try await phone("enrol", uri)
            #expect(enrolled.status == 0, "\(enrolled)")
        }

        func phone(_ arguments: String...) async throws -> Child.Ended {
            try await owner.begin(arguments + ["--json", "--keys", owner.keys]).ended()
        }

        /// Runs a command of the operator that may fail.
        func refused(_ arguments: String...) async throws -> Child.Ended {
            try await Child.run(
                try BuiltProgram.twoefay.path, ["--config", relay.settings] + arguments, in: relay.directory.path)
        }

        func login() async throws -> String {
            let asked = try await shop.curl("POST", "/login", json: #"{"username":"alice"}"#)
            return try #require(asked["challenge"]?.string, "\(asked)")
        }

        func outcome(_ challenge: String) async throws -> LoginOutcome {
            let answer = try await shop.curl("POST", "/auth", json: #"{"challenge":"\#(challenge)"}"#)
            return try LoginOutcome(try #require(answer.json?.object, "\(answer)"))
        }

        /// The phone as the website sees it.
        func device() async throws -> JSONObject {
            let user = try await shop.curl("GET", "/user/alice")
            return try #require(user["devices"]?.array?.first?.object, "\(user)")
        }
    }

    private static func object(_ ended: Child.Ended) throws -> JSONObject {
        try #require(ended.status == 0, "\(ended)")
        return try #require(try JSONReader.read(Array(ended.output.utf8)).object)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func personLocksAndResetsThePIN(kind: StoreKind) async throws {
        let scene = try await Scene(kind)
        let challenge = try await scene.login()
        let bare = try await scene.phone("approve", "--challenge", challenge)
        #expect(bare.status == 1 && bare.errors.contains("pin_required"), "\(bare)")
        #expect(bare.errors.contains("twoefay phone pin set"), "\(bare.errors)")
        #expect(try Self.object(try await scene.phone("pin", "show"))["state"] == "none")

        let set = try Self.object(try await scene.phone("pin", "set", "--new-pin", "258014736900"))
        #expect(set["state"] == "set" && set["version"] == 1)
        let puk = try #require(set["puk"]?.string)
        #expect(PINSecret.isPUK(puk))
        #expect(try await scene.device()["pin"] == "set")
        // The phone stores the secret, and nothing that depends on the PIN.
        let kept = try scene.owner.kept()
        let key = try #require(kept.pinSecret).key(of: "258014736900", for: .pin)
        let file = JSONWriter.text(.object(try kept.json()))
        for text in ["258014736900", puk, Base64URL.encode(key.publicKey.x963[1..<33])] {
            #expect(!file.contains(text))
        }

        for (pin, left) in [("0000", "2"), ("1111", "1")] {
            let wrong = try await scene.phone("approve", "--challenge", challenge, "--pin", pin)
            #expect(wrong.status == 1 && wrong.errors.contains("pin_wrong"), "\(wrong)")
            #expect(wrong.errors.contains("After \(left) more"), "\(wrong.errors)")
        }
        let last = try await scene.phone("approve", "--challenge", challenge, "--pin", "2222")
        #expect(last.status == 1 && last.errors.contains("pin_locked"), "\(last)")
        let right = try await scene.phone("approve", "--challenge", challenge, "--pin", "258014736900")
        #expect(right.status == 1 && right.errors.contains("pin_locked"), "\(right)")
        let device = try await scene.device()
        #expect(device["pin"] == "locked")
        let shown = try await scene.relay.tool(["device", "show", try #require(device["device"]?.string)])
        #expect(shown.contains("Its PIN is locked after 3 wrong ones"), "\(shown)")
        #expect(try Self.object(try await scene.phone("pin", "show"))["state"] == "locked")

        let other = try await scene.phone("pin", "reset", "--puk", "000000000000", "--new-pin", "1357")
        #expect(other.status == 1 && other.errors.contains("puk_wrong"), "\(other)")
        let reset = try Self.object(try await scene.phone("pin", "reset", "--puk", puk, "--new-pin", "1357"))
        #expect(reset["state"] == "set" && reset["puk"] != set["puk"] && reset["puk_tries_left"] == 5)
        let changed = try Self.object(
            try await scene.phone("pin", "change", "--pin", "1357", "--new-pin", "8642"))
        #expect(changed["version"] == 3 && changed["puk"] == .null)
        let approved = try await scene.phone("approve", "--challenge", challenge, "--pin", "8642")
        #expect(approved.status == 0, "\(approved)")
        #expect(try await scene.outcome(challenge).isSuccess)
        #expect(
            try scene.relay.count(
                "SELECT count(*) FROM audit WHERE event IN ('pin.set', 'pin.reset', 'pin.changed', 'pin.locked')") == 4)
    }

    /// A typing error that cannot be a PIN costs no try, and after a wrong PIN the person is asked
    /// again. The terminal does not show the PIN.
    @Test(arguments: ["watch", "approve"]) func personTypesThePIN(command: String) async throws {
        let scene = try await Scene(.file)
        _ = try Self.object(try await scene.phone("pin", "set", "--new-pin", "2580"))
        let challenge = try await scene.login()
        let terminal = try Input.terminal()
        let (options, yes) = command == "watch" ? (["--once"], "a\n") : (["--challenge", challenge], "y\n")
        let phone = try scene.owner.begin(
            [command, "--keys", scene.owner.keys] + options, input: terminal.child)
        try await phone.says(command == "watch" ? "[a]pprove" : "Approve this?")
        terminal.write(yes)
        try await phone.says("Your PIN: ")
        for (index, typed) in ["\n", "258O\n", "2580 \n", "0258\n"].enumerated() {
            terminal.write(typed)
            try await phone.says("Your PIN: ", number: index + 2)
        }
        try await phone.says("No try was counted.", number: 3)
        try await phone.says("After 2 more")
        #expect(try scene.relay.count("SELECT pin_failures FROM device") == 1)
        terminal.write("2580\n")
        let ended = await phone.ended()
        #expect(ended.status == 0, "\(ended)")
        let shown = terminal.echoed()
        #expect(shown.contains(yes.prefix(1)) && !shown.contains("258"), "\(shown)")
        #expect(try await scene.outcome(challenge).isSuccess)
    }

    /// A person who gives up gets a terminal that shows what is typed.
    @Test(arguments: ["watch", "approve"]) func interruptedPromptRestoresTheEcho(command: String) async throws {
        let scene = try await Scene(.file)
        _ = try Self.object(try await scene.phone("pin", "set", "--new-pin", "2580"))
        let challenge = try await scene.login()
        let terminal = try Input.terminal()
        let options = command == "watch" ? [] : ["--challenge", challenge]
        let phone = try scene.owner.begin([command, "--keys", scene.owner.keys] + options, input: terminal.child)
        try await phone.says(command == "watch" ? "[a]pprove" : "Approve this?")
        #expect(terminal.isEchoing)
        terminal.write(command == "watch" ? "a\n" : "y\n")
        try await phone.says("Your PIN: ")
        #expect(!terminal.isEchoing)
        if command == "watch" { phone.signal(SIGINT) } else { terminal.write("\u{3}\n") }
        let ended = await phone.ended()
        #expect(ended.status == (command == "watch" ? 0 : 1), "\(ended)")
        #expect(terminal.isEchoing)
        #expect(try scene.relay.count("SELECT pin_failures FROM device") == 0)
    }

    /// The person has lost PIN and PUK, and the help desk reads out a code.
    @Test(arguments: [StoreKind.file, .mariadb]) func helpDeskUnlocksThePhone(kind: StoreKind) async throws {
        let scene = try await Scene(kind)
        let device = try #require(try await scene.device()["device"]?.string)
        let bare = try await scene.refused("device", "unlock-code", device)
        #expect(bare.status == 4 && bare.errors.contains("has no PIN"), "\(bare)")
        let set = try Self.object(try await scene.phone("pin", "set", "--new-pin", "2580"))
        let challenge = try await scene.login()
        for pin in ["0000", "1111", "2222"] {
            _ = try await scene.phone("approve", "--challenge", challenge, "--pin", pin)
        }
        #expect(try await scene.device()["pin"] == "locked")

        let none = try await scene.phone("pin", "unlock", "--code", "12345678", "--new-pin", "8642")
        #expect(none.status == 1 && none.errors.contains("unlock_void"), "\(none)")
        let bad = try await scene.phone("pin", "unlock", "--code", "1234", "--new-pin", "8642")
        #expect(bad.status == 2 && bad.errors.contains("an unlock code has 8 digits"), "\(bad)")
        let issued = try #require(
            try JSONReader.read(Array(try await scene.relay.tool(["device", "unlock-code", device, "--json"]).utf8))
                .object)
        let code = try #require(issued["code"]?.string)
        #expect(code.utf8.count == 8 && issued["counter"] == 1 && issued["user"] == "alice", "\(issued)")
        let wrong = try await scene.phone(
            "pin", "unlock", "--code", code == "00000000" ? "00000001" : "00000000", "--new-pin", "8642")
        #expect(wrong.status == 1 && wrong.errors.contains("After 4 more wrong ones"), "\(wrong)")
        let spoken = "\(code.prefix(4)) \(code.dropFirst(4))"
        let unlocked = try Self.object(try await scene.phone("pin", "unlock", "--code", spoken, "--new-pin", "8642"))
        #expect(unlocked["state"] == "set" && unlocked["version"] == 2 && unlocked["puk"] != set["puk"])
        let again = try await scene.phone("pin", "unlock", "--code", code, "--new-pin", "1357")
        #expect(again.status == 1 && again.errors.contains("unlock_void"), "\(again)")
        let approved = try await scene.phone("approve", "--challenge", challenge, "--pin", "8642")
        #expect(approved.status == 0, "\(approved)")

        let shown = try await scene.relay.tool(["device", "unlock-code", device])
        #expect(shown.contains("--withdraw"), "\(shown)")
        let withdrawn = try await scene.relay.tool(["device", "unlock-code", device, "--withdraw"])
        #expect(withdrawn.contains("is void"), "\(withdrawn)")
        let nothing = try await scene.refused("device", "unlock-code", device, "--withdraw")
        #expect(nothing.status == 4 && nothing.errors.contains("has no unlock code"), "\(nothing)")
        try await scene.relay.tool(["device", "suspend", device])
        let held = try await scene.refused("device", "unlock-code", device)
        #expect(held.status == 4 && held.errors.contains("device resume"), "\(held)")
    }

    @Test func unsuitableDigitsAreNotSent() async throws {
        let scene = try await Scene(.file)
        for arguments in [["set", "--new-pin", "12"], ["change", "--pin", "1234", "--new-pin", "abcd"]] {
            let refused = try await scene.owner.begin(["pin"] + arguments + ["--keys", scene.owner.keys]).ended()
            #expect(refused.status == 2 && refused.errors.contains("a PIN has 4 to 12 digits"), "\(refused)")
        }
        let short = try await scene.phone("pin", "reset", "--puk", "123", "--new-pin", "1234")
        #expect(short.status == 2 && short.errors.contains("a PUK has 12 digits"), "\(short)")
        let missing = try await scene.phone("pin", "set")
        #expect(missing.status == 2 && missing.errors.contains("--new-pin is missing"), "\(missing)")
        #expect(try Self.object(try await scene.phone("pin", "show"))["version"] == 0)
    }
}
