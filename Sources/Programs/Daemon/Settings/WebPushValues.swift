import Curl
import EventLoop

/// The contact for operators of push services: `mailto:operator@example.com`, or an `https:` URL.
public struct ContactText: SettingsValue {
    public let settingsText: String

    public init(settingsText text: String) throws(SettingsFault) {
        let isPlain = text.utf8.allSatisfy { (0x21...0x7e).contains($0) } && text.utf8.count <= 256
        let parts = text.dropFirst(7).split(separator: "@", omittingEmptySubsequences: false)
        let isMail = text.hasPrefix("mailto:") && parts.count == 2 && parts.allSatisfy { !$0.isEmpty }
        guard isPlain, isMail || TransferURL(text)?.secure == true else {
            throw SettingsFault("must be mailto:NAME@HOST or an https: URL")
        }
        settingsText = text
    }
}

/// A list of address ranges, such as `10.20.0.0/16, fd00:20::/32`.
public struct AddressRanges: SettingsValue {
    public let all: [AddressRange]

    public init(settingsText text: String) throws(SettingsFault) {
        var all: [AddressRange] = []
        for part in text.split(whereSeparator: { $0 == "," || $0 == " " }) {
            guard let range = AddressRange(String(part)) else {
                throw SettingsFault(
                    "must be ranges such as 10.20.0.0/16, without host bits; not \(part)")
            }
            all.append(range)
        }
        guard !all.isEmpty else { throw SettingsFault("must be one or more ranges, such as 10.20.0.0/16") }
        self.all = all
    }

    public var settingsText: String { all.map(\.description).joined(separator: ", ") }
}
