import Bytes
import Crypto
import Daemon
import World

/// The files of the sidecar, read and checked together.
struct SidecarFiles {
    /// The authority that signed the relay's certificate, and the certificate and key of the website.
    let authority: [UInt8]
    let certificate: [UInt8]
    let key: Secret
    let token: BearerToken?
    /// The name of the website in its certificate.
    let website: String
    let certificateEnds: Timestamp

    init(_ options: Sidecar.Options, at now: Timestamp) throws(Failure) {
        certificate = try Self.read("certificate", options.certificate) { path throws(Files.Problem) in
            try Files.read(path)
        }
        authority = try Self.read("authority", options.authority) { path throws(Files.Problem) in
            try Files.read(path)
        }
        key = try Self.read("key", options.key) { path throws(Files.Problem) in try Files.readSecret(path) }
        token = try options.tokenFile.map { path throws(Failure) in try Self.token(path) }
        let leaf: Certificate
        do throws(CryptoFailure) {
            leaf = try Certificate(pem: certificate)
        } catch {
            throw Failure(
                .failed, "\(options.certificate): \(error)", next: "Give the file NAME.pem of 'twoefay website add'.")
        }
        let prefix = "twoefay:website:"
        guard let uri = leaf.uris.first, leaf.uris.count == 1, uri.hasPrefix(prefix) else {
            throw Failure(
                .failed, "\(options.certificate) is not the certificate of a website",
                next: "Give the file NAME.pem of 'twoefay website add'.")
        }
        website = String(uri.dropFirst(prefix.count))
        certificateEnds = leaf.notAfter
        guard certificateEnds > now else {
            throw Failure(
                .failed, "\(options.certificate) has ended at \(certificateEnds.rfc3339)",
                next: "Ask the operator for another certificate: 'twoefay website renew \(website)' makes it.")
        }
    }

    private static func token(_ path: String) throws(Failure) -> BearerToken {
        let line = try read("token-file", path) { path throws(Files.Problem) in try Files.readLine(path) }
        guard let token = BearerToken(line) else {
            throw Failure(
                .failed,
                "\(path): a token has at least \(BearerToken.shortest) letters, digits and characters of -._~+/=",
                next: "To make one: (umask 077; openssl rand -base64 32 > \(path))")
        }
        return token
    }

    private static func read<Content>(
        _ option: String, _ path: String, _ read: (String) throws(Files.Problem) -> Content
    ) throws(Failure) -> Content {
        do throws(Files.Problem) {
            return try read(path)
        } catch {
            throw Failure(
                Files.exists(path) ? .failed : .notFound, "--\(option) \(error.text)",
                next: "Run 'twoefay connect --help' for the files that it needs.")
        }
    }
}
