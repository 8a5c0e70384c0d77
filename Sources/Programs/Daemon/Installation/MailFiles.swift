import Bytes
import Couriers
import Curl
import EventLoop
import HTTP
import Templates

extension LoadedFiles {
    public struct Mail: Sendable {
        public let server: SMTPServer
        public let from: MailAddress
    }
}

extension LoadedFilesReader {
    mutating func mail() -> LoadedFiles.Mail? {
        let mail = settings.mail
        let authority = mail.authority.flatMap { bytes($0) }
        // libcurl reports a bad authority file only when it connects, and then every mail fails.
        if let file = mail.authority { _ = certificate(file, authority) }
        let password = mail.passwordFile.flatMap { line(of: $0) }
        guard let url = mail.url, let from = mail.from else { return nil }
        let login = mail.username.flatMap { username in
            password.map { SMTPServer.Login(username: username, password: $0) }
        }
        return LoadedFiles.Mail(server: server(url, authority, login), from: from)
    }

    /// Returns the mail server for a gateway that is reached by mail: its own, or the one of
    /// `mail`.
    func mail(
        of gateway: Settings.SMSGatewaySettings.MailGatewaySettings, _ password: Secret, _ authority: [UInt8]?,
        usual: LoadedFiles.Mail?
    ) -> LoadedFiles.Mail? {
        guard let from = gateway.from ?? settings.mail.from else { return nil }
        guard let url = gateway.url else { return usual.map { LoadedFiles.Mail(server: $0.server, from: from) } }
        let login = gateway.username.map { SMTPServer.Login(username: $0, password: password) }
        return LoadedFiles.Mail(server: server(url, authority, login), from: from)
    }

    private func server(_ url: SMTPAddress, _ authority: [UInt8]?, _ login: SMTPServer.Login?) -> SMTPServer {
        var server = SMTPServer(url)
        server.extraTrust = authority
        server.name = Self.name(of: settings.origin.host)
        server.login = login
        return server
    }

    /// The name for the SMTP greeting. An address is written in brackets (RFC 5321 §4.1.3).
    private static func name(of host: String) -> String {
        guard SocketAddress(host: host, port: 0) != nil else { return host }
        return host.contains(":") ? "[IPv6:\(host)]" : "[\(host)]"
    }

    /// Returns the password in a file.
    mutating func line(of file: FileName) -> Secret? {
        do throws(Files.Problem) {
            return try Files.readLine(settings.path(of: file))
        } catch {
            problems.append(error.text)
            return nil
        }
    }

    /// Returns the built-in templates, with those of the directory in the settings if there is one.
    mutating func wording() -> MessageCatalog? {
        guard let directory = settings.templates else { return .builtIn }
        var files: [CatalogFile] = []
        do throws(Files.Problem) {
            let path = settings.path(of: directory)
            for name in try Files.names(in: path) where name.hasSuffix(".po") {
                files.append(CatalogFile(path: "\(path)/\(name)", bytes: try Files.read("\(path)/\(name)")))
            }
        } catch {
            problems.append(error.text)
            return nil
        }
        do throws(CatalogFaults) {
            return try MessageCatalog(files)
        } catch {
            problems += error.all.map(\.description)
            return nil
        }
    }
}
