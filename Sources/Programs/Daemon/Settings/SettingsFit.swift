import EventLoop
import HTTP
import Storage
import YAML

/// The checks of the settings as a whole: missing keys, and keys that do not fit together. Each
/// problem has the position of the key, group or list item that is to be changed.
extension SettingsReader {
    mutating func checkWhole(_ root: YAMLNode) {
        for key in SettingsKeys.all where key.required && !seen.contains(key.name) {
            problem(root.place, "\(key.name) is missing, as in \(key.name): \(key.example)")
        }
        checkAddresses(root)
        checkProxies(root)
        checkPhone(root)
        checkPush(root)
        checkMail(root)
        if (settings.webhooks.certificate == nil) != (settings.webhooks.key == nil) {
            problem(
                place(namedIn: "webhooks.certificate webhooks.key", root, or: "webhooks"),
                "webhooks.certificate and webhooks.key must be set together")
        }
        checkToken(root)
        if settings.est.url == nil {
            reportIdle(
                ["documents", "ca", "username", "password_file", "certificate", "key"].map { "est.\($0)" },
                without: "est.url", root)
        } else if let fault = checkEST() {
            problem(place(namedIn: fault, root, or: "est"), fault)
        }
        if settings.command.words.isEmpty {
            if !seen.contains("phone_ca.command") {
                reportIdle(["phone_ca.timeout", "phone_ca.documents"], without: "phone_ca.command", root)
            }
        } else if let fault = checkCommand() {
            problem(place(namedIn: fault, root, or: "phone_ca"), fault)
        }
        if settings.control.socket == nil {
            reportIdle(
                ["auditors", "helpdesk", "operators", "requests", "changes"].map { "control.\($0)" },
                without: "control.socket", root)
        }
        checkTexts(root)
        checkAttestations(root)
        checkSignedPolicies(root)
        checkGateways(root)
    }

    /// Checks what only a start uses, so that a reload and `--check` find the fault before it does.
    private mutating func checkAddresses(_ root: YAMLNode) {
        if seen.contains("storage") {
            do throws(StorageURL.Malformed) {
                _ = try settings.storageURL()
            } catch {
                problem(root.place(of: "storage"), error.description)
            }
        }
        let listened = [
            ("listen", settings.listen), ("phone.listen", settings.phone.listen),
            ("metrics.listen", settings.metrics?.place),
        ]
        for (key, place) in listened {
            guard seen.contains(key), let place, SocketAddress(host: place.host, port: place.port) == nil else {
                continue
            }
            problem(
                root.place(of: key), "\(key): \(place.host) is not an IP address, such as 0.0.0.0 or [::] for all")
        }
    }

    private mutating func checkAttestations(_ root: YAMLNode) {
        do throws(SettingsFault) {
            try settings.requireAttestable(settings.policy)
        } catch {
            // The message begins with the policy that the file has to change.
            let key = error.message.prefix { $0 != " " && $0 != ":" }
            problem(root.place(of: "policies.\(SettingsKeys.underscored(String(key)))"), error.message)
        }
    }

    private mutating func checkSignedPolicies(_ root: YAMLNode) {
        do throws(SettingsFault) {
            try settings.policy.requireSignedAnswers()
        } catch {
            let key = SettingsKeys.underscored(settings.policy.demandOfSignedAnswers ?? "")
            problem(root.place(of: "policies.\(key)"), error.message)
        }
    }

    private mutating func checkProxies(_ root: YAMLNode) {
        let place = root.place(of: "proxies")
        if settings.proxies?.all.contains(where: { $0.bits == 0 }) == true {
            problem(place, "proxies must not contain all addresses: a proxy can claim any client address")
        }
        // Addresses of clients never have this form, so such a range would match no connection.
        if settings.proxies?.all.contains(where: { $0.description.hasPrefix("::ffff:") }) == true {
            problem(place, "proxies must contain IPv4 addresses in IPv4 form: 10.0.0.5 instead of ::ffff:10.0.0.5")
        }
    }

    private mutating func checkPhone(_ root: YAMLNode) {
        let phone = settings.phone
        guard let listen = phone.listen else {
            return reportIdle(
                ["origin", "certificate", "key", "origins", "enabled", "relays", "ios_apps", "android_apps"].map {
                    "phone.\($0)"
                }, without: "phone.listen", root)
        }
        let missing = [
            ("origin", phone.origin == nil), ("certificate", phone.certificate == nil), ("key", phone.key == nil),
        ]
        for (name, isMissing) in missing where isMissing && !isFaulty("phone.\(name)") {
            problem(root.place(of: "phone"), "phone.\(name) is missing, which phone.listen needs")
        }
        if phone.enabled == .off {
            let idle = ["relays", "ios_apps", "android_apps"].map { "phone.\($0)" }
            reportIdle(idle, without: "phone.enabled: on", root)
        }
        let apps = ["ios_apps", "android_apps"].map { "phone.\($0)" }
        if let first = apps.first(where: seen.contains), phone.origin?.port ?? 443 != 443 {
            problem(
                root.place(of: first),
                "\(first) needs a phone.origin with port 443: Apple and Google look for the app's files nowhere else")
        }
        if listen == settings.listen {
            problem(root.place(of: "phone.listen"), "phone.listen must not be that of listen")
        }
        if phone.origin?.origin == settings.origin.origin {
            problem(
                root.place(of: "phone.origin"),
                "phone.origin must not be that of origin: give it another port or another host")
        }
    }

    private mutating func checkPush(_ root: YAMLNode) {
        let push = settings.push
        let credentials = ["key", "key_id", "team_id", "certificate", "certificate_key"].map { "push.apns.\($0)" }
        if push.topic == nil {
            reportIdle(credentials, without: "push.apns.topic", root)
        } else if push.credential == nil {
            problem(
                root.place(of: "push.apns"),
                "push.apns needs either key, key_id and team_id, or certificate and certificate_key")
        }
        if settings.fcm.account == nil {
            reportIdle(["endpoint", "ca"].map { "push.fcm.\($0)" }, without: "push.fcm.account", root)
        }
        if settings.webPush.key == nil {
            reportIdle(["contact", "allow", "ca"].map { "push.web.\($0)" }, without: "push.web.key", root)
        }
    }

    private mutating func checkMail(_ root: YAMLNode) {
        let mail = settings.mail
        guard mail.url != nil else {
            return reportIdle(
                ["from", "username", "password_file", "ca"].map { "mail.\($0)" }, without: "mail.url", root)
        }
        if mail.from == nil, !isFaulty("mail.from") {
            problem(root.place(of: "mail"), "mail.from is missing, as in mail.from: login@example.com")
        }
        if (mail.username == nil) != (mail.passwordFile == nil) {
            problem(
                place(namedIn: "mail.username mail.password_file", root, or: "mail"),
                "mail.username and mail.password_file must be set together")
        }
    }

    private mutating func checkToken(_ root: YAMLNode) {
        let names = ["module", "token", "key", "pin_file"].map { "pkcs11.\($0)" }
        guard let first = names.first(where: seen.contains) else { return }
        if settings.keys == nil {
            problem(
                root.place(of: first), "\(first) has no effect without key_service: only twoefay-keys uses a token")
        } else if !names.allSatisfy(seen.contains) {
            problem(root.place(of: "pkcs11"), "pkcs11 needs module, token, key and pin_file")
        }
    }

    private mutating func checkTexts(_ root: YAMLNode) {
        let ofGateways =
            ["from", "allow"] + ["user_hour", "user_day", "prefix_hour", "prefix_day", "day"].map { "limits.\($0)" }
        if settings.texts.gateways.all.isEmpty {
            // If a gateway is wrong, that problem is enough; these keys may be right.
            if !seen.contains("sms.gateways") {
                reportIdle(ofGateways.map { "sms.\($0)" }, without: "sms.gateways", root)
            }
        } else if !seen.contains("sms.allow") {
            problem(
                root.place(of: "sms"),
                "sms.allow is missing: name the allowed number prefixes, as in allow: [\"+49\"], or [\"+\"] for all"
            )
        }
    }

    /// Checks each gateway against the settings outside of it.
    private mutating func checkGateways(_ root: YAMLNode) {
        let nodes = root["sms"]?["gateways"]?.sequence ?? []
        for gateway in settings.texts.gateways.all {
            let place = nodes.first { $0["name"]?.string == gateway.name }?.place ?? root.place(of: "sms.gateways")
            switch gateway.kind {
            case .mail(let mailed):
                if mailed.url == nil, settings.mail.url == nil {
                    problem(place, "gateway \(gateway.name): url is missing; set it, or mail.url")
                }
                if mailed.from == nil, settings.mail.from == nil {
                    problem(
                        place,
                        "gateway \(gateway.name): from is missing; set it, or mail.from, as in from: login@example.com")
                }
            // For other kinds the sender is optional: the gateway has its own.
            case .twilio(_, _, _, nil) where gateway.from == nil && settings.texts.from == nil:
                problem(place, "gateway \(gateway.name): set from or service, or sms.from")
            default: break
            }
        }
    }

    /// Returns the position of the first set key that a message names, or of a group.
    private func place(namedIn message: String, _ root: YAMLNode, or group: String) -> YAMLPosition {
        let words = message.split { " ,:".contains($0) }.map(String.init)
        return root.place(of: words.first(where: seen.contains) ?? group)
    }

    /// Whether a problem of this key was found already.
    private func isFaulty(_ name: String) -> Bool { problems.contains { $0.message.hasPrefix(name + " ") } }

    /// Reports keys that are set, and have no effect without another one. One line is enough,
    /// because one change corrects all of them.
    private mutating func reportIdle(_ names: [String], without missing: String, _ root: YAMLNode) {
        let idle = names.filter(seen.contains)
        // If the other one is there and wrong, that problem is enough.
        guard let first = idle.first, !isFaulty(missing) else { return }
        let others = idle.dropFirst().map { $0.split(separator: ".").last.map(String.init) ?? $0 }
        let all = ([first] + others).joined(separator: ", ")
        problem(
            root.place(of: first),
            others.isEmpty ? "\(all) has no effect without \(missing)" : "\(all) have no effect without \(missing)")
    }
}

extension YAMLNode {
    /// The position of a key such as `push.apns.topic`, or of the innermost group of it that is
    /// there.
    fileprivate func place(of name: String) -> YAMLPosition {
        var found = place
        var node = self
        for word in name.split(separator: ".") {
            guard let member = node.mapping?.first(where: { $0.name == word }) else { break }
            (found, node) = (member.place, member.value)
        }
        return found
    }
}
