import Bytes
import Crypto
import TestSupport
import Testing
import World

/// Published samples, in the directory `Vectors`.
///
/// - `apple-2024`: the sample of Apple's "Attestation Object Validation Guide" for
///   `0352187391.com.apple.example_app_attest`. Apple passed the challenge itself as
///   `clientDataHash`.
/// - `apple-2026`: the guide's later sample for `1234567890.com.example.myapp`, which has the extensions of
///   iOS 27. Its receipt, which nothing covers, is replaced by an empty one.
/// - `ios-14.4-…`: an attestation for development and an assertion by the same key, from the tests of
///   veehaitch/devicecheck-appattest (Apache 2.0).
/// - `sample-27`: a sample of google/android-key-attestation (Apache 2.0).
/// - All others: test data of android/keyattestation (Apache 2.0): `DEVICE-SDK`. Two of them are
///   genuine certificates with another signature or faulty content.
enum Vectors {
    /// The directory of the project.
    static let project = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
    private static let directory = "\(project)/Tests/Base/AttestationTests/Vectors"

    static func base64(_ name: String) throws -> [UInt8] {
        let text = try TextFile.read("\(directory)/\(name).txt").filter { $0 != "\n" }
        return try #require(Base64.decode(text))
    }

    static func chain(_ name: String) throws -> [Certificate] {
        try Certificate.all(pem: try TextFile.bytes("\(directory)/\(name).pem"))
    }

    static func time(_ text: String) throws -> Timestamp { try #require(Timestamp(rfc3339: text)) }
}
