import Domain
import HTTP

/// What an operator may say of a website, at the command that asks for it.
struct WebsiteFields {
    let help: String

    init(command: String) { help = "Run 'twoefay \(command) --help' for what it takes." }

    func check(displayName: String) throws(Failure) {
        if let fault = FieldRule.line(displayName, limit: 128) {
            throw Failure(.usage, "--display-name \(fault)", next: help)
        }
    }

    func check(callback: String) throws(Failure) {
        guard Self.isCallback(callback) else {
            throw Failure(.usage, "--callback must be a URL such as https://shop.example.com/twoefay", next: help)
        }
    }

    func check(policy name: String, _ text: String) throws(Failure) {
        var policy = Policy()
        do throws(Policy.Fault) {
            try policy.set(name, to: text)
        } catch {
            throw Failure(.usage, "--\(error.message)", next: help)
        }
    }

    /// https, a host, perhaps a port, a path, and no one's password.
    private static func isCallback(_ text: String) -> Bool {
        guard text.hasPrefix("https://"), text.utf8.count <= 2048,
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") })
        else { return false }
        let host = text.dropFirst(8).prefix { $0 != "/" && $0 != "?" }
        guard let (_, port) = WebAddress.split(String(host)) else { return false }
        return port != 0
    }
}
