import Crypto
import World

/// The statement about the pins of the server's authority, as `tls.pins` names it.
extension LoadedFilesReader {
    /// Reads and checks the statement; nil if there is none, or if it has expired: phones do not take
    /// it any more, and the relay needs nothing of it.
    mutating func pins(_ authority: Certificate?) -> PinStatement? {
        guard let file = settings.tls.pins, let bytes = bytes(file) else { return nil }
        let path = settings.path(of: file)
        let statement: PinStatement
        do throws(PinStatement.Malformed) {
            statement = try PinStatement(StatementFile.text(bytes))
        } catch {
            problems.append("\(path): \(StatementFile.fault(error))")
            return nil
        }
        guard statement.expiresAt > now else { return nil }
        if knowsOrigin, statement.audience != settings.origin.settingsText {
            problems.append("\(path): is for \(statement.audience), which is not the origin; make it anew")
        }
        // Phones would take the pins, and refuse the relay from then on.
        if let authority, !statement.pins.contains(authority.spkiThumbprint) {
            problems.append(
                "\(path): does not name the key of \(settings.path(of: settings.tls.authority)); make it anew")
        }
        return statement
    }
}

extension PinStatement {
    /// Returns the pin of the former authority while phones move from it to the present one; nil
    /// before and afterwards. The server still sends the former one's certificate meanwhile.
    func formerPin(before present: [UInt8], chain: [Certificate]) -> [UInt8]? {
        guard signer != present, pins.contains(present) else { return nil }
        return chain.contains { $0.spkiThumbprint == signer } ? signer : nil
    }
}

/// A file with one statement.
public enum StatementFile {
    static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.filter { $0 > 0x20 }, as: UTF8.self)
    }

    static func fault(_ malformed: PinStatement.Malformed) -> String {
        "holds no statement of 'twoefay server pins': \(malformed.description)"
    }

    /// Returns the statement in a file; nil if there is no such file.
    public static func read(_ path: String) throws(Failure) -> PinStatement? {
        guard Files.exists(path) else { return nil }
        let next = "Move the file away, if it is not the statement of this installation."
        let bytes: [UInt8]
        do throws(Files.Problem) {
            bytes = try Files.read(path)
        } catch {
            throw Failure(.failed, error.text, next: next)
        }
        do throws(PinStatement.Malformed) {
            return try PinStatement(text(bytes))
        } catch {
            throw Failure(.failed, "\(path): \(fault(error))", next: next)
        }
    }
}
