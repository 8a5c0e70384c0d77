import Bytes
import World

/// Reads one Key element: the parameters of its codes, and whether its policy permits their use.
struct PSKCKeyReader {
    let key: XMLElement
    let device: XMLElement?
    let lock: PSKCEncryption
    let now: Timestamp

    private static let profiles = "urn:ietf:params:xml:ns:keyprov:pskc:"

    /// The name of the algorithm profile, such as `hotp`; the whole URI if it is not a profile of
    /// the RFC.
    var algorithm: String? {
        key.attributes["Algorithm"].map {
            $0.hasPrefix(Self.profiles) ? $0.dropFirst(Self.profiles.utf8.count).lowercased() : $0
        }
    }

    private var data: XMLElement? { key["Data"] }
    var isEncrypted: Bool { data?.children.contains { $0["EncryptedValue"] != nil } == true }
    private var called: String { "key \(key.attributes["Id"] ?? "without an Id")" }

    private func fault(_ element: XMLElement? = nil, _ message: String) -> SeedFault {
        (element ?? key).fault("\(called): \(message)")
    }

    func seed() throws(SeedFault) -> Seed {
        try requirePermission()
        let format = key["AlgorithmParameters", "ResponseFormat"]
        let kind: Seed.Kind
        switch algorithm {
        case "hotp":
            let counter = try number("Counter") ?? 0
            guard SeedBounds.counter.contains(counter) else {
                throw fault(data?["Counter"], "Counter must be at most \(SeedBounds.counter.upperBound)")
            }
            kind = .hotp(counter: counter)
        case "totp":
            let period = try number("TimeInterval") ?? 30
            guard let seconds = Int(exactly: period), SeedBounds.period.contains(seconds) else {
                throw fault(
                    data?["TimeInterval"], "TimeInterval must be from 1 to \(SeedBounds.period.upperBound) seconds")
            }
            // The relay accepts a drift of one time step. With a larger one, codes would be refused
            // from the first day.
            guard try number("TimeDrift") ?? 0 <= 1 else {
                throw fault(data?["TimeDrift"], "its clock is off by more than one time step; replace the token")
            }
            kind = .totp(period: seconds)
        case .some(let other): throw fault(nil, "the algorithm \(other) is not supported (hotp, totp)")
        case nil: throw fault(nil, "it has no Algorithm")
        }
        return Seed(
            secret: try secret(), kind: kind, hash: try hash(), digits: try digits(format),
            username: key["UserId"]?.content ?? device?["UserId"]?.content, serial: device?["SerialNo"]?.content,
            line: key.line)
    }

    // MARK: Parameters of the codes

    private func secret() throws(SeedFault) -> Secret {
        guard let field = data?["Secret"] else {
            let reference = key["KeyReference"]?.content.map { " (KeyReference \($0))" } ?? ""
            throw fault(
                nil,
                "its secret is not in the file but derived from a key of the manufacturer\(reference); "
                    + "ask for a file that contains the secrets")
        }
        guard let bytes = try value(field, plain: \.base64), SeedBounds.secretBytes.contains(bytes.count) else {
            throw fault(
                field, "its secret is missing, not base64, or has more than \(SeedBounds.secretBytes.upperBound) bytes")
        }
        return Secret(bytes)
    }

    /// Returns the value of a field; nil if the field is missing.
    private func number(_ name: String) throws(SeedFault) -> Int64? {
        guard let field = data?[name] else { return nil }
        if let number = field["PlainValue"]?.integer { return Int64(number) }
        // An encrypted number is its bytes, the most significant first.
        if field["EncryptedValue"] != nil, let bytes = try value(field, plain: \.base64), bytes.count <= 8,
            let number = Int64(exactly: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        {
            return number
        }
        throw fault(field, "\(name) must be a whole number")
    }

    private func value(
        _ field: XMLElement, plain: (XMLElement) -> [UInt8]?
    ) throws(SeedFault) -> [UInt8]? {
        if let encrypted = field["EncryptedValue"] {
            do throws(SeedFault) {
                return try lock.open(encrypted, in: field)
            } catch {
                throw SeedFault(line: error.line, "\(called): \(error.message)")
            }
        }
        return field["PlainValue"].flatMap(plain)
    }

    private func digits(_ format: XMLElement?) throws(SeedFault) -> Int {
        guard let format else { return 6 }
        guard format.attributes["Encoding"] ?? "DECIMAL" == "DECIMAL" else {
            throw fault(format, "its codes are \(format.attributes["Encoding"] ?? ""); they must be decimal")
        }
        guard ["false", "0"].contains(format.attributes["CheckDigits"] ?? "false") else {
            throw fault(format, "its codes end with a check digit, which is not supported")
        }
        guard let digits = format.attributes["Length"].flatMap({ Int($0) }), SeedBounds.digits.contains(digits) else {
            throw fault(format, "codes must have 6 to 8 digits")
        }
        return digits
    }

    /// Returns the hash of a suite such as `HMAC-SHA256`; SHA-1 if none is stated.
    private func hash() throws(SeedFault) -> Seed.Hash {
        guard let suite = key["AlgorithmParameters", "Suite"], let text = suite.content else { return .sha1 }
        let words = text.lowercased().split { !$0.isLetter && !$0.isNumber }.joined()
        let name =
            words.hasPrefix("hmac") || words.hasPrefix("hotp") || words.hasPrefix("totp")
            ? String(words.dropFirst(4)) : words
        guard let hash = Seed.Hash(rawValue: name) else {
            throw fault(suite, "its Suite, \(text), is not supported (HMAC-SHA1, HMAC-SHA256, HMAC-SHA512)")
        }
        return hash
    }

    // MARK: Policy

    /// Throws if the policy does not permit codes. A policy that is not understood permits nothing
    /// (RFC 6030, section 5).
    private func requirePermission() throws(SeedFault) {
        guard let policy = key["Policy"] else { return }
        for rule in policy.children {
            switch rule.name {
            case "StartDate":
                guard try date(rule) <= now else { throw fault(rule, "it is not valid before \(rule.content ?? "")") }
            case "ExpiryDate":
                guard try date(rule) > now else {
                    throw fault(rule, "it was valid until \(rule.content ?? ""); remove it from the file")
                }
            case "KeyUsage":
                // There may be several; one of them must be OTP.
                guard policy.all("KeyUsage").contains(where: { $0.content == "OTP" }) else {
                    throw fault(rule, "its policy does not allow one-time codes (KeyUsage)")
                }
            case "PINPolicy":
                // In the mode Local the token checks the PIN before it shows a code. In other modes
                // the PIN is part of the code.
                guard rule.attributes["PINUsageMode"] ?? "Local" == "Local" else {
                    throw fault(rule, "its codes contain a PIN, which is not supported")
                }
            default:
                throw fault(rule, "its policy has \(rule.name), which is not supported, so the key must not be used")
            }
        }
    }

    private func date(_ rule: XMLElement) throws(SeedFault) -> Timestamp {
        // A time without a zone is read as UTC.
        guard let text = rule.content, let date = Timestamp(rfc3339: text) ?? Timestamp(rfc3339: text + "Z") else {
            throw fault(rule, "\(rule.name) must be a time in UTC, such as 2026-05-31T00:00:00Z")
        }
        return date
    }
}
