import Bytes
import Crypto
import EST
import KeyService
import PKCS11
import Storage
import World

/// The issuer of phones' certificates.
public enum PhoneIssuer: Sendable {
    /// The authority with its key, in this process.
    case authority(CertificateAuthority)
    /// The process `twoefay-keys`, which has the key.
    case service(KeyServiceClient)
    /// An EST server, whose authority has this certificate.
    case est(ESTIssuer.Options, root: Certificate)
    /// A command that `twoefay-keys` runs, whose authority has this certificate.
    case command(KeyServiceClient, Settings.CertificateCommand, root: Certificate)
}

/// The keys of a relay, and the issuer of its phones' certificates.
struct KeySource: Sendable {
    let data: DataKeys
    let issuer: PhoneIssuer
}

/// The master key and the key of the phones' authority, or the process that has them.
extension LoadedFilesReader {
    mutating func keys(_ phones: Certificate?) -> KeySource? {
        guard let service = settings.keys else {
            let master = master()
            if settings.est.url != nil {
                guard let issuer = outside(phones), let master else { return nil }
                return KeySource(data: master.dataKeys, issuer: issuer)
            }
            guard let phones, let authority = authority(phones), let master else { return nil }
            return KeySource(data: master.dataKeys, issuer: .authority(authority))
        }
        let client = KeyServiceClient(path: settings.path(of: service))
        do throws(KeyServiceFailure) {
            let data = try client.unwrap(waiting: start)
            guard settings.hasOutsideAuthority else { return KeySource(data: data, issuer: .service(client)) }
            return outside(phones, client).map { KeySource(data: data, issuer: $0) }
        } catch {
            problems.append("keys: \(error)")
            return nil
        }
    }

    /// - Parameter client: the process that runs the command, if there is one.
    private mutating func outside(_ phones: Certificate?, _ client: KeyServiceClient? = nil) -> PhoneIssuer? {
        let options = est()
        guard let phones else { return nil }
        // Otherwise the relay would refuse every certificate that the server has issued.
        if !phones.isSelfIssued || !phones.isAuthority {
            let fault = phones.isAuthority ? "is not self-signed" : "is not the certificate of an authority"
            problems.append(
                "\(settings.path(of: settings.tls.phones)): \(fault); with est.url or phone_ca.command it must be the "
                    + "root that issues the phones' certificates")
            return nil
        }
        if let client, !settings.command.words.isEmpty {
            return .command(client, settings.command, root: phones)
        }
        return options.map { .est($0, root: phones) }
    }

    /// Returns the phones' authority with its key, from a token or a file.
    private mutating func authority(_ certificate: Certificate) -> CertificateAuthority? {
        if settings.token.module != nil { return authority(certificate, on: token) }
        let file = settings.tls.phonesKey
        guard let pem = secret(file) else { return nil }
        do throws(CryptoFailure) {
            return try CertificateAuthority(
                certificate: certificate, key: try P256PrivateKey(pem: pem), revocationListURL: revocationListURL)
        } catch {
            problems.append("\(settings.path(of: file)): \(error.description)")
            return nil
        }
    }

    /// Opens the token that the settings name. Returns nil if they name none.
    mutating func openToken(_ phones: Certificate?) -> TokenKey? {
        let token = settings.token
        guard let phones, let module = token.module, let label = token.label, let key = token.key,
            let pinFile = token.pinFile, let pin = line(of: pinFile)
        else { return nil }
        do throws(CryptoFailure) {
            return try TokenKey(
                TokenKey.Place(module: settings.path(of: module), token: label, key: key), pin: pin,
                publicKey: try phones.publicKey())
        } catch {
            problems.append("pkcs11: \(error.description)")
            return nil
        }
    }

    private mutating func authority(_ certificate: Certificate, on token: TokenKey?) -> CertificateAuthority? {
        // A problem of the token was reported when it was opened.
        guard let token else { return nil }
        do throws(CryptoFailure) {
            return try CertificateAuthority(
                certificate: certificate, key: token, revocationListURL: revocationListURL)
        } catch {
            problems.append("\(settings.path(of: settings.tls.phones)): \(error.description)")
            return nil
        }
    }

    /// The URL of the revocation list of the phones' authority.
    private var revocationListURL: String { settings.origin.settingsText + "/crl" }

    mutating func master() -> MasterKey? {
        guard let file = secret(settings.masterKey) else { return nil }
        do throws(MasterKey.Fault) {
            return try MasterKey(file: file)
        } catch {
            problems.append("\(settings.path(of: settings.masterKey)): \(error.message)")
            return nil
        }
    }
}

/// The files that `twoefay-keys` reads: the master key, and the authorities with their keys.
struct KeyFiles: Sendable {
    let data: DataKeys
    /// The phones' authority; nil if it is outside of the installation.
    let phones: CertificateAuthority?
    /// The websites' authority; nil if websites may not renew by themselves.
    let websites: CertificateAuthority?
    let token: TokenKey?

    /// Reads the files. Reports all problems at once.
    ///
    /// - Parameter token: the token that was opened before; nil opens it if the settings name one.
    static func load(
        _ settings: Settings, at now: Timestamp, token: TokenKey? = nil
    ) throws(Failure) -> KeyFiles {
        var files = settings
        // This process is the key service, so it must not ask one.
        files.keys = nil
        var reading = LoadedFilesReader(settings: files, now: now, start: .zero)
        let phones = reading.certificate(files.tls.phones, reading.bytes(files.tls.phones))
        var websites: CertificateAuthority?
        let first = files.tls.websitesRenewal == .on ? reading.bytes(files.tls.websites) : nil
        if case .authority(let authority)? = reading.websiteIssuer(reading.certificate(files.tls.websites, first)) {
            websites = authority
        }
        if settings.hasOutsideAuthority {
            // The relay asks the EST server, and the command has its own files.
            guard let master = reading.master(), reading.problems.isEmpty else {
                throw Failure(
                    .failed, reading.problems.joined(separator: "\n"),
                    next: "The settings name these files in master_key_file, tls.websites and tls.websites_key.")
            }
            return KeyFiles(data: master.dataKeys, phones: nil, websites: websites, token: nil)
        }
        reading.token = token ?? reading.openToken(phones)
        guard let keys = reading.keys(phones), case .authority(let authority) = keys.issuer, reading.problems.isEmpty
        else {
            throw Failure(
                .failed, reading.problems.joined(separator: "\n"),
                next:
                    "The settings name these files in master_key_file, tls.phones, tls.phones_key or pkcs11, and "
                    + "tls.websites_key."
            )
        }
        return KeyFiles(data: keys.data, phones: authority, websites: websites, token: reading.token)
    }
}

extension DataKeys {
    func rowAuthenticator() throws(CryptoFailure) -> RowAuthenticator {
        try RowAuthenticator(
            keys: zip(sealing, signing).map { RowAuthenticator.Key(id: $0.id, secret: $1, isNext: $0.isNext) })
    }

    func usableRowAuthenticator() throws(Failure) -> RowAuthenticator {
        do throws(CryptoFailure) {
            return try rowAuthenticator()
        } catch {
            throw Failure(.failed, "the master key: \(error)", next: "Restore its file from your copy.")
        }
    }

    func usableSealer() throws(Failure) -> Sealer {
        do throws(CryptoFailure) {
            return try sealer()
        } catch {
            throw Failure(.failed, "the master key: \(error)", next: "Restore its file from your copy.")
        }
    }
}
