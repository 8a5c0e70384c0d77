import HTTP
import PhoneApp
import Relay

extension Settings {
    /// The listener for phones in browsers, used if an address is set.
    public struct PhoneListener: Sendable, Equatable {
        public var listen: HostPort?
        public var origin: WebAddress?
        public var certificate: FileName?
        public var key: FileName?
        /// The other origins whose pages may call it.
        public var origins: WebOrigins?
        /// Whether the web app is served there.
        public var enabled = Switch.on
        /// Other relays whose phone the app may be.
        public var relays: WebOrigins?
        /// The native apps that may take over the app's links.
        public var appleApps: AppIDs?
        public var androidApps: AndroidApps?

        public init() {}
    }

    /// The addresses for phones in browsers; nil without a listener for them.
    public var browsers: BrowserAccess? {
        phone.origin.map {
            BrowserAccess(origin: $0.origin, app: phone.enabled == .on ? $0.origin + PhoneApp.root : nil)
        }
    }

    /// The web app of the phone; nil if it is not served.
    func phoneApp(at origin: WebAddress) -> PhoneApp? {
        guard phone.enabled == .on else { return nil }
        let apps = PhoneApp.NativeApps(apple: phone.appleApps?.all ?? [], android: phone.androidApps?.all ?? [])
        return PhoneApp(origin: origin, relays: phone.relays?.all ?? [], apps: apps, version: Program.version)
    }
}

/// A list of origins, such as `https://app.example.org, https://phone.example.net:8443`.
public struct WebOrigins: SettingsValue {
    public let all: [WebAddress]

    public init(settingsText text: String) throws(SettingsFault) {
        var all: [WebAddress] = []
        for part in text.split(whereSeparator: { $0 == "," || $0 == " " }) {
            guard let address = WebAddress(String(part)) else {
                throw SettingsFault("must be origins such as https://app.example.org, with no path; not \(part)")
            }
            all.append(address)
        }
        guard !all.isEmpty else { throw SettingsFault("must be one or more origins, such as https://app.example.org") }
        self.all = all
    }

    public var settingsText: String { all.map(\.text).joined(separator: ", ") }
}

extension SettingsKeys {
    static let phone: [SettingsKey] = [
        .optional(
            "phone.listen", \.phone.listen, example: "0.0.0.0:8443",
            "A second address and port, for phones that are pages in a browser. Setting this key turns this listener on. "
                + "It serves the routes of phones and the web app, and never asks for a client certificate."),
        .optional(
            "phone.origin", \.phone.origin, example: "https://phone.example.com:8443",
            "The URL by which browsers reach it."),
        .optional(
            "phone.certificate", \.phone.certificate, example: "phone.pem",
            "Its certificate, with its chain, from an authority that browsers trust. SIGHUP reads it again."),
        .optional(
            "phone.key", \.phone.key, example: "phone.key",
            "The private key of this certificate."),
        .optional(
            "phone.origins", \.phone.origins, example: "https://app.example.org",
            "The origins of other pages that may be phones here (CORS). The pages of phone.origin always may."),
        .standard(
            "phone.enabled", \.phone.enabled,
            "Whether the phone's web app is served there, under /phone/: on or off. Without it, only other pages can be "
                + "phones."),
        .optional(
            "phone.relays", \.phone.relays, example: "https://phone.example.net:8443",
            "The phone.origin of other relays whose phone this app may be, too. Those list this one in phone.origins."),
        .optional(
            "phone.ios_apps", \.phone.appleApps, example: "ABCDE12345.com.example.app",
            "The App IDs of apps for iOS that may take over links of the web app, separated by commas. Apple looks at "
                + "port 443 of the host alone."),
        .optional(
            "phone.android_apps", \.phone.androidApps,
            example: "com.example.app=" + String(repeating: "0123456789abcdef", count: 4),
            "Apps for Android that may do the same: the package name, = and the SHA-256 of the certificate that signs it, "
                + "in hexadecimal."),
    ]
}
