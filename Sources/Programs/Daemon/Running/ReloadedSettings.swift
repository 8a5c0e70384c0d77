import Domain
import HTTP2
import Log
import Relay
import YAML

extension Settings {
    /// Returns these settings, which are those of the start, with what a reload takes from the file
    /// as it is now. What is not taken needs a restart, and `settingsForRestart` names it.
    ///
    /// The push credential is taken as a whole, because a new key has a new key id, which is a
    /// setting.
    func taking(_ new: Settings) -> Settings {
        var now = self
        now.http1 = new.http1
        now.proxies = new.proxies
        now.connections = new.connections
        now.seal = new.seal
        now.webhooks = new.webhooks
        now.mail = new.mail
        now.templates = new.templates
        now.texts = new.texts
        now.directories = new.directories
        now.geolocation = new.geolocation
        now.attestations = new.attestations
        now.policy = new.policy
        now.quotas = new.quotas
        // Only the tool reads them.
        now.prices = new.prices
        now.retention = new.retention
        now.nonceKeyHours = new.nonceKeyHours
        now.webhookSecretDays = new.webhookSecretDays
        now.log.level = new.log.level
        now.control = new.control
        now.control.socket = control.socket
        now.takeFiles(of: new)
        return now
    }

    /// Takes the names of the files that a reload reads anyway.
    private mutating func takeFiles(of new: Settings) {
        let phonesKey = tls.phonesKey
        tls = new.tls
        phone.certificate = new.phone.certificate
        phone.key = new.phone.key
        if keys == nil, new.keys == nil {
            masterKey = new.masterKey
        } else {
            // Only `twoefay-keys` reads these two, and only at its start.
            tls.phonesKey = phonesKey
        }
        if fcm.account != nil, new.fcm.account != nil { fcm.account = new.fcm.account }
        if push.credential != nil, new.push.credential != nil {
            push.key = new.push.key
            push.keyID = new.push.keyID
            push.teamID = new.push.teamID
            push.certificate = new.push.certificate
            push.certificateKey = new.push.certificateKey
        }
    }
}

extension SettingsOfFile {
    /// The settings of the file that differ from those in use, in the order of the example.
    func settingsForRestart(using now: Settings) -> [SettingForRestart] {
        SettingsKeys.all.filter { $0.text(settings) != $0.text(now) }.map {
            SettingForRestart(name: $0.name, place: places.keys[$0.name])
        }
    }
}

extension Daemon {
    /// Uses the limits, balancers and periods of these settings from now on.
    func replaceLimits(_ now: Settings) {
        proxies.replace(now.proxies?.all ?? [])
        admission.replace(ConnectionLimits.limits(now.connections, log: log))
        relay.replace(AdjustableSettings(quotas: now.quotas, retention: now.retention, rolling: now.rolling))
    }

    /// Logs each setting that has changed and takes effect only at the next start, with its line.
    @discardableResult func reportLeft(_ new: SettingsOfFile, besides now: Settings) -> [SettingForRestart] {
        let left = new.settingsForRestart(using: now)
        for setting in left {
            log.warning(
                "daemon.restart",
                [
                    .setting: setting.name, .path: setting.place?.file, .line: setting.line,
                    .reason: setting.line == nil
                        ? "this setting was removed, which needs a restart"
                        : "this setting has changed, and needs a restart",
                ])
        }
        return left
    }
}
