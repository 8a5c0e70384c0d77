import Couriers
import Curl

extension SMTPAddress: SettingsValue {
    public init(settingsText text: String) throws(SettingsFault) {
        guard let address = SMTPAddress(text) else {
            throw SettingsFault("must be smtp://HOST[:PORT] or smtps://HOST[:PORT], with no user and no path")
        }
        self = address
    }

    public var settingsText: String { text }
}

extension MailAddress: SettingsValue {
    public init(settingsText text: String) throws(SettingsFault) {
        guard let sender = MailAddress(text) else {
            throw SettingsFault("must be NAME@HOST, or a name and the address in < and >")
        }
        self = sender
    }

    public var settingsText: String { text }
}
