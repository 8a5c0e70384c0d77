import Bytes
import Crypto

/// The key or password of an encrypted key package. The maker of the tokens sends it separately
/// from the file.
public enum PSKCKey: Sendable {
    case shared(Secret)
    case password(Secret)
}

/// The encryption and authentication of the values of one container, as its first elements declare
/// them.
///
/// Invariant: a value is decrypted only after its MAC was verified, because AES-CBC alone detects
/// no change. Tested in `FigureTests.swift` and `DamagedPackageTests.swift`.
struct PSKCEncryption {
    private let given: PSKCKey?
    private var key: Secret?
    private var need: SeedFaults.Need?
    private var authentication: (algorithm: Authentication, key: Secret?)?

    init(_ given: PSKCKey?) {
        self.given = given
        // A container under a pre-shared key may omit the element EncryptionKey.
        if case .shared(let key) = given { self.key = key }
    }

    /// The key or password that is missing, if a value turns out to be encrypted; nil if there is a
    /// key.
    var missing: SeedFaults.Need? { key == nil ? need ?? .key(nil) : nil }

    // MARK: The key

    mutating func read(encryptionKey element: XMLElement) throws(SeedFault) {
        if let derived = element["DerivedKey"] {
            need = .password(derived["MasterKeyName"]?.content)
            if case .password(let password) = given { key = try Self.derive(derived, from: password) }
        } else if element["X509Data"] != nil || element["KeyValue"] != nil {
            throw element.fault(
                "encryption for the owner of a certificate (RSA) is not supported; ask the manufacturer for a file "
                    + "encrypted with a pre-shared key or a password (RFC 6030, 6.1 and 6.2)")
        } else {
            need = .key(element["KeyName"]?.content)
            if case .password = given {
                throw element.fault("it is encrypted with a pre-shared key, not with a password")
            }
        }
    }

    private static let mostIterations = 10_000_000

    private static func derive(_ element: XMLElement, from password: Secret) throws(SeedFault) -> Secret {
        guard let method = element["KeyDerivationMethod"] else {
            throw element.fault("it does not say how its key is derived from the password")
        }
        guard method.attributes["Algorithm"]?.hasSuffix("#pbkdf2") == true,
            let parameters = method["PBKDF2-params"]
        else {
            throw method.fault("its key is not derived from the password by PBKDF2, the only supported function")
        }
        guard let salt = parameters["Salt", "Specified"]?.base64 else {
            throw parameters.fault("the salt of PBKDF2 is missing or is not base64")
        }
        guard let iterations = parameters["IterationCount"]?.integer, (1...mostIterations).contains(iterations) else {
            throw parameters.fault("IterationCount must be a number from 1 to \(mostIterations)")
        }
        let length = parameters["KeyLength"]?.integer ?? 16
        guard [16, 24, 32].contains(length) else { throw parameters.fault("KeyLength must be 16, 24 or 32") }
        let function: PBKDF2.Function
        switch parameters["PRF"]?.attributes["Algorithm"].map(fragment) {
        case nil, "hmac-sha1": function = .sha1
        case "hmac-sha256": function = .sha256
        case "hmac-sha512": function = .sha512
        case .some(let other): throw parameters.fault("the function of PBKDF2, \(other), is not supported")
        }
        do throws(CryptoFailure) {
            return try PBKDF2.derive(
                from: password, salt: salt, iterations: iterations, count: length, function: function)
        } catch {
            throw parameters.fault(error.description)
        }
    }

    /// Returns the part after `#`; the whole address if it has no `#`.
    private static func fragment(_ address: String) -> String {
        String(address[(address.lastIndex(of: "#").map { address.index(after: $0) } ?? address.startIndex)...])
            .lowercased()
    }

    // MARK: Authentication

    private enum Authentication: String {
        case sha1 = "hmac-sha1"
        case sha256 = "hmac-sha256"
        case sha512 = "hmac-sha512"

        func code(_ key: Secret, _ message: [UInt8]) -> [UInt8] {
            switch self {
            case .sha1: HMAC.sha1(key: key, message)
            case .sha256: HMAC.sha256(key: key, message)
            case .sha512: HMAC.sha512(key: key, message)
            }
        }
    }

    mutating func read(macMethod element: XMLElement) throws(SeedFault) {
        guard let name = element.attributes["Algorithm"].map(Self.fragment),
            let algorithm = Authentication(rawValue: name)
        else {
            throw element.fault(
                "its MAC algorithm, \(element.attributes["Algorithm"] ?? "none"), is not supported; "
                    + "HMAC with SHA-1, SHA-256 or SHA-512 is")
        }
        var secret: Secret?
        if let wrapped = element["MACKey"], let key {
            // A MAC key has no MAC itself. If the key is wrong, the result is random bytes, and no
            // value matches.
            secret = try Self.decrypt(wrapped, try Self.cipherValue(wrapped), under: key) ?? Secret([0])
        } else {
            secret = key
        }
        authentication = (algorithm, secret)
    }

    // MARK: Values

    /// Returns the bytes of an EncryptedValue. Its MAC is verified before anything is decrypted,
    /// because CBC alone would accept every change.
    func open(_ value: XMLElement, in field: XMLElement) throws(SeedFault) -> [UInt8] {
        guard let key else { throw value.fault("encrypted, and no key was given") }
        guard let authentication, let codeKey = authentication.key else {
            throw value.fault("encrypted, but the file has no MACMethod before it, so changes could not be detected")
        }
        guard let code = field["ValueMAC"]?.base64 else {
            throw field.fault("encrypted without a ValueMAC, so changes could not be detected")
        }
        let bytes = try Self.cipherValue(value)
        guard Secret.matches(authentication.algorithm.code(codeKey, bytes), code) else {
            throw field.fault("its ValueMAC does not match: the key or password is wrong, or the file was changed")
        }
        guard let opened = try Self.decrypt(value, bytes, under: key) else {
            throw value.fault("its decrypted value has no valid padding of XML encryption")
        }
        return opened.reveal()
    }

    private static func cipherValue(_ element: XMLElement) throws(SeedFault) -> [UInt8] {
        guard let bytes = element["CipherData", "CipherValue"]?.base64, bytes.count >= 32,
            bytes.count.isMultiple(of: 16)
        else { throw element.fault("its CipherValue is missing, not base64, or has a wrong length for AES-CBC") }
        return bytes
    }

    private static let keyBytes = ["aes128-cbc": 16, "aes192-cbc": 24, "aes256-cbc": 32]

    /// Decrypts AES-CBC. Returns nil if the padding is not valid.
    private static func decrypt(
        _ element: XMLElement, _ bytes: [UInt8], under key: Secret
    ) throws(SeedFault) -> Secret? {
        let algorithm = element["EncryptionMethod"]?.attributes["Algorithm"]
        guard let size = algorithm.flatMap({ keyBytes[fragment($0)] }) else {
            throw element.fault(
                "encrypted by \(algorithm ?? "an unnamed cipher"); AES-128, -192 and -256 in CBC are supported")
        }
        guard key.count == size else {
            throw element.fault("encrypted with a key of \(size) bytes; the given key has \(key.count)")
        }
        guard let plain = CBC.open(Array(bytes.dropFirst(16)), key: key, vector: Array(bytes.prefix(16))),
            let padding = plain.last, (1...16).contains(padding)
        else { return nil }
        return Secret(Array(plain.dropLast(Int(padding))))
    }
}

extension XMLElement {
    /// The bytes of base64 text, as XML allows it: with white space anywhere, and padded.
    var base64: [UInt8]? {
        let letters = text.utf8.filter { !$0.isXMLSpace }
        return letters.isEmpty ? nil : Base64.decode(String(decoding: letters, as: UTF8.self))
    }

    /// The number, if the text is decimal digits only.
    var integer: Int? {
        guard let content, content.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(content)
    }
}
