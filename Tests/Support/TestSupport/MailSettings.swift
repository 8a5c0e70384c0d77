extension AioSMTPServer {
    /// The password of the user `relay` at a server of these tests.
    public static let password = "mail password"

    /// Starts a server that knows the relay.
    public static func knowingTheRelay() async throws -> AioSMTPServer {
        try await AioSMTPServer(user: "relay", password: password)
    }

    /// Makes a relay send its mails through this server.
    ///
    /// - Parameter files: where the authority of the server and the password are written.
    public func use(in settings: inout String, _ files: TemporaryDirectory) throws {
        try TextFile.write(authority, to: files("mail-ca.pem"))
        try TextFile.write("\(Self.password)\n", to: files("mail.password"))
        try settings.set("mail.url", to: "smtp://localhost:\(port)")
        try settings.set("mail.from", to: "login@shop.example.com")
        try settings.set("mail.username", to: "relay")
        try settings.set("mail.password_file", to: files("mail.password"))
        try settings.set("mail.ca", to: files("mail-ca.pem"))
    }
}
