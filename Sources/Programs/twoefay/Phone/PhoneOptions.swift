import Commands
import Daemon
import Domain
import EventLoop
import JSON
import Phone
import World

/// The options that the phone commands share.
enum PhoneOptions {
    static let dpop = Command.Option(
        "dpop", .nothing, "Authenticate each request by a DPoP proof, instead of the client certificate.")
    static let uv = Command.Option(
        "uv", .one("HOW"),
        "How the phone verified its owner: \(word(SignedStatement.UserVerification.allCases)) (default: none). It is signed as given."
    )
    static let uvAge = Command.Option(
        "uv-age", .one("SECONDS"),
        "The seconds since then (default: 0). It is signed as given, if the website demands it.")

    static func uvAge(_ invocation: Invocation) throws(Failure) -> Int64 {
        guard let text = invocation.value(uvAge.name) else { return 0 }
        guard let seconds = Int64(text), (0...Int64(Int32.max)).contains(seconds) else {
            throw Failure(
                .usage, "--uv-age must be a number of seconds, not \(ScreenText.visible(text))",
                next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
        }
        return seconds
    }

    static let number = Command.Option(
        "number", .one("DIGITS"), "The number that the website shows, if it shows one.")

    static let place = Command.Option(
        "place", .one("LAT,LON"),
        "The place of the phone in degrees. It is rounded to a tenth, and sent only if the website asks for it.")

    /// Returns the coarse place, if the option is given.
    static func place(_ invocation: Invocation) throws(Failure) -> PhonePlace? {
        guard let text = invocation.value(place.name) else { return nil }
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
        guard parts.count == 2, let latitude = parts[0], let longitude = parts[1],
            let place = PhonePlace(latitude: latitude, longitude: longitude)
        else {
            throw Failure(
                .usage, "--place must be latitude and longitude, such as 52.5,13.4, not \(ScreenText.visible(text))",
                next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
        }
        return place
    }

    static let posture = Command.Option(
        "posture", .one("FACTS"),
        "The state of the phone to report, if the website has demands, such as os_version=18.1,app_version=42,screen_lock=yes."
    )

    static let pin = Command.Option(
        "pin", .one("PIN"), "The phone's PIN, if the website demands it; - reads it from standard input.")

    /// Returns the PIN, if the option is given.
    static func pin(_ invocation: Invocation) throws(Failure) -> String? {
        guard let text = invocation.value(pin.name) else { return nil }
        return try checked(pin: text == "-" ? readLine() ?? "" : text, invocation)
    }

    static let pinDigits = "a PIN has \(PINSecret.digits.lowerBound) to \(PINSecret.digits.upperBound) digits"

    static func checked(pin: String, _ invocation: Invocation) throws(Failure) -> String {
        guard PINSecret.isPIN(pin) else {
            throw Failure(
                .usage, pinDigits,
                next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
        }
        return pin
    }

    /// Returns the state that the option describes; nil if it is not given.
    static func posture(_ invocation: Invocation) throws(Failure) -> PhonePosture? {
        guard let text = invocation.value(posture.name) else { return nil }
        var facts = PhonePosture()
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let pair = part.split(separator: "=", omittingEmptySubsequences: false).map { String($0) }
            switch (pair.first, pair.count == 2 ? pair[1] : nil) {
            case ("os_version"?, let value?) where isVersion(value): facts.osVersion = value
            case ("app_version"?, let value?) where isVersion(value): facts.appVersion = value
            case ("screen_lock"?, "yes"?): facts.hasScreenLock = true
            case ("screen_lock"?, "no"?): facts.hasScreenLock = false
            default:
                throw Failure(
                    .usage,
                    "--posture must be os_version=N.N, app_version=N and screen_lock=yes or no, separated by commas, "
                        + "not \(ScreenText.visible(text))",
                    next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
            }
        }
        return facts
    }

    private static func isVersion(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 64
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
    }

    /// The language of this process, by the variables that POSIX names, as a language tag; nil for
    /// the language of programs.
    static let language: String? = {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { Keyring.variable($0) }.first ?? "C"
        let name = locale.prefix { $0 != "." && $0 != "@" }
        guard name != "POSIX" else { return nil }
        let tag = String(name.map { $0 == "_" ? "-" : $0 })
        return FieldRule.language(tag) == nil ? tag : nil
    }()

    static func identity(_ invocation: Invocation) -> Responder.Identity {
        invocation.has(dpop.name) ? .dpop : .certificate
    }

    static func presence(_ invocation: Invocation) throws(Failure) -> SignedStatement.UserVerification {
        try word(invocation, uv, SignedStatement.UserVerification.none)
    }

    /// Returns the value of an option; `usual` if the option is not given.
    static func word<Word: RawRepresentable<String> & CaseIterable>(
        _ invocation: Invocation, _ option: Command.Option, _ usual: Word
    ) throws(Failure) -> Word {
        guard let text = invocation.value(option.name) else { return usual }
        guard let word = Word(rawValue: text) else {
            throw Failure(
                .usage, "--\(option.name) must be one of \(word(Word.allCases)), not \(text)",
                next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
        }
        return word
    }

    private static func word<Word: RawRepresentable<String>>(_ words: some Collection<Word>) -> String {
        words.map(\.rawValue).joined(separator: ", ")
    }
}

/// Prints events as they happen: text for people, or one JSON value on a line.
struct PhoneOutput: Sendable {
    let isJSON: Bool

    init(_ invocation: Invocation) { isJSON = invocation.has("json") }

    func callAsFunction(_ text: String, _ event: String, _ members: JSONObject = [:]) {
        guard isJSON else { return Program.say(text + "\n") }
        var object: JSONObject = ["event": .string(event)]
        for member in members.members { object.set(member.name, member.value) }
        Program.say(JSONWriter.text(.object(object)) + "\n")
    }

    /// Prints a question without a line end. It prints nothing with `--json`.
    func prompt(_ text: String) {
        if !isJSON { Program.say(text) }
    }
}

extension Tool {
    /// Runs a command on a new loop, and returns its result.
    static func onLoop<Value: Sendable>(
        _ work: @escaping @Sendable (EventLoop) async throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let result: Result<Value, Failure>
        do throws(SystemFailure) {
            result = try EventLoop.run("phone", time: SystemTime()) { loop in
                do throws(Failure) {
                    return .success(try await work(loop))
                } catch {
                    return .failure(error)
                }
            }
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads or file descriptors.")
        }
        return try result.get()
    }
}
