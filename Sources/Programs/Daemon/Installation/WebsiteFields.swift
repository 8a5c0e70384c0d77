import Curl
import Domain
import EventLoop

/// What an operator may say of a website, at the command that asks for it.
struct WebsiteFields {
    let help: String

    init(command: String) { help = "Run 'twoefay \(command) --help' for what it takes." }

    func check(displayName: String) throws(Failure) {
        if let fault = FieldRule.line(displayName, limit: 128) {
            throw Failure(.usage, "--display-name \(fault)", next: help)
        }
    }

    /// - Parameter allowed: what `callbacks.allow` says.
    func check(callback: String, allowed: AddressRanges? = nil) throws(Failure) {
        guard let fault = Self.fault(inCallback: callback, allowed: allowed?.all ?? []) else { return }
        throw Failure(.usage, "--callback must \(fault)", next: help)
    }

    func check(policy name: String, _ text: String) throws(Failure) {
        var policy = Policy()
        do throws(Policy.Fault) {
            try policy.set(name, to: text)
        } catch {
            throw Failure(.usage, "--\(error.message)", next: help)
        }
    }

    /// What it must be and is not. A name is judged where it leads, each time that something is sent there.
    static func fault(inCallback text: String, allowed: [AddressRange]) -> String? {
        guard let url = TransferURL(text), text.utf8.count <= 2048 else {
            return "be a URL such as https://shop.example.com/twoefay"
        }
        let addresses = AddressGuard(allowing: allowed)
        if !url.secure, allowed.isEmpty || addresses.names(host: url.host) == false {
            return "be https: http goes only to addresses inside that 'callbacks.allow' in the settings names"
        }
        return addresses.refusal(of: url.host).map {
            "lead elsewhere: \(url.host) is \($0), and 'callbacks.allow' in the settings does not name it"
        }
    }
}
