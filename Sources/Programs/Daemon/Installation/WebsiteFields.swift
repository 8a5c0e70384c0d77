import Curl
import Domain
import EventLoop

/// The checks for the fields of a website on the command line.
struct WebsiteFields {
    let help: String

    init(command: String) { help = "Run 'twoefay \(command) --help' for usage." }

    func check(displayName: String) throws(Failure) {
        if let fault = FieldRule.line(displayName, limit: 128) {
            throw Failure(.usage, "--display-name \(fault)", next: help)
        }
    }

    /// Checks a webhook URL.
    ///
    /// - Parameter allowed: the ranges of `webhooks.allow`.
    func check(webhook: String, allowed: AddressRanges? = nil) throws(Failure) {
        guard let fault = Self.fault(inWebhookURL: webhook, allowed: allowed?.all ?? []) else { return }
        throw Failure(.usage, "--webhook must \(fault)", next: help)
    }

    func check(policy name: String, _ text: String) throws(Failure) {
        var policy = Policy()
        do throws(Policy.Fault) {
            try policy.set(name, to: text)
        } catch {
            throw Failure(.usage, "--\(error.message)", next: help)
        }
    }

    /// Returns the requirement that a webhook URL fails; nil if it is valid. The addresses behind a
    /// host name are checked at each delivery instead.
    static func fault(inWebhookURL text: String, allowed: [AddressRange]) -> String? {
        guard let url = TransferURL(text), text.utf8.count <= 2048 else {
            return "be a URL such as https://shop.example.com/twoefay"
        }
        let addresses = AddressGuard(allowing: allowed)
        if !url.secure, allowed.isEmpty || addresses.names(host: url.host) == false {
            return "be https: http is allowed only for addresses in 'webhooks.allow' in the settings"
        }
        return addresses.refusal(of: url.host).map {
            "have another host: \(url.host) is \($0), and 'webhooks.allow' in the settings does not list it"
        }
    }
}
