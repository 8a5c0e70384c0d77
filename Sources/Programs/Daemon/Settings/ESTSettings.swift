import Curl

extension Settings {
    /// The EST server that issues the certificates of phones, used if a URL is set.
    public struct ESTService: Sendable, Equatable {
        public var url: ESTAddress?
        /// The URL for certificates that sign documents.
        public var documents: ESTAddress?
        /// The only authority to trust for the server.
        public var authority: FileName?
        public var username: String?
        public var passwordFile: FileName?
        public var certificate: FileName?
        public var key: FileName?

        public init() {}
    }
}

/// The URL below which an EST server has its operations, without a slash at the end.
public struct ESTAddress: SettingsValue {
    public let url: TransferURL

    public init(settingsText text: String) throws(SettingsFault) {
        guard let url = TransferURL(text), url.secure, !url.path.contains("?"), !text.hasSuffix("/") else {
            throw SettingsFault(
                "must be an https: URL without a slash at its end, such as "
                    + "https://est.example.com/.well-known/est/phones")
        }
        self.url = url
    }

    public var settingsText: String { url.text }
}

extension SettingsKeys {
    static let est: [SettingsKey] = [
        .optional(
            "est.url", \.est.url, example: "https://est.example.com/.well-known/est/phones",
            "The URL of the EST server, up to the name of the operation. Setting this key makes the server the authority "
                + "of the phones. tls.phones must be the certificate of its authority; tls.phones_key is not read."),
        .optional(
            "est.documents", \.est.documents, example: "https://est.example.com/.well-known/est/documents",
            "The same for certificates with tags, which sign documents. Default: none are issued."),
        .optional(
            "est.ca", \.est.authority, example: "est-ca.pem",
            "The authority of the server's own certificate. The relay trusts no other."),
        .optional(
            "est.username", \.est.username, example: "relay",
            "The user name, if the server authenticates the relay by a password."),
        .optional(
            "est.password_file", \.est.passwordFile, example: "est.password",
            "The file with the password."),
        .optional(
            "est.certificate", \.est.certificate, example: "est-client.pem",
            "The client certificate, with its chain, if the server authenticates the relay by one."),
        .optional(
            "est.key", \.est.key, example: "est-client.key",
            "The private key of the client certificate. Changes of this group need a restart."),
    ]
}

extension SettingsReader {
    mutating func checkEST() -> String? {
        let est = settings.est
        guard est.url != nil else { return nil }
        if est.authority == nil { return "est.ca is missing, as in est.ca: est-ca.pem" }
        if (est.username == nil) != (est.passwordFile == nil) {
            return "est.username and est.password_file must be set together"
        }
        // The server would read a shorter name and a longer password (RFC 7617).
        if est.username?.contains(":") == true { return "est.username must not have a colon" }
        if (est.certificate == nil) != (est.key == nil) { return "est.certificate and est.key must be set together" }
        if est.username == nil, est.certificate == nil {
            return "est needs username and password_file, or certificate and key: the server must know the relay"
        }
        if settings.token.module != nil { return "est.url and pkcs11.module exclude each other" }
        return nil
    }
}
