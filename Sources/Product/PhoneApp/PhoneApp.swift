import Attestation
import Bytes
import HTTP
import JSON

/// The phone's web app: its files under `/phone/`, and what native apps need to take its links over.
///
/// The app is a phone that needs no store. Its files are in the program, and nothing of it comes from
/// elsewhere: the policy of its pages allows scripts of this origin alone, and connections to the
/// relays that the operator lists. `Assets` has the app.
///
/// A browser keeps a copy, and the app asks its person before it takes another version. So
/// `config.json` has the digest of each file.
///
/// Tests: `APITests/PhoneAppTests.swift`, and `BrowserPhoneTests` for the app itself.
public struct PhoneApp: Sendable {
    /// The native apps that may take over the links of activations.
    public struct NativeApps: Sendable, Equatable {
        public var apple: [String]
        public var android: [AndroidApp]

        public init(apple: [String] = [], android: [AndroidApp] = []) {
            self.apple = apple
            self.android = android
        }
    }

    /// The path below which the app has its files.
    public static let root = "/phone/"
    /// The page that `/phone/` shows.
    private static let page = "index.html"

    private let files: [String: AppFile]
    private let common: [Fields.Field]

    /// - Parameters:
    ///   - origin: the origin of the app.
    ///   - relays: the origins of other relays whose phone it may be.
    public init(origin: WebAddress, relays: [WebAddress], apps: NativeApps, version: String) {
        let relays = [origin.origin] + relays.map(\.origin).filter { $0 != origin.origin }
        var files = Dictionary(uniqueKeysWithValues: AppFile.all.map { (Self.root + $0.name, $0) })
        let config: JSONObject = [
            "version": .string(version), "relays": .array(relays.map { .string($0) }),
            "files": .object(
                JSONObject(
                    files.sorted { $0.key < $1.key }.map { ($0.key, JSONValue.string($0.value.digest)) })),
        ]
        func add(_ path: String, _ value: JSONValue) {
            let name = path.split(separator: "/").last.map(String.init) ?? path
            files[path] = AppFile(name, type: "application/json", JSONWriter.write(value))
        }
        add(Self.root + "config.json", .object(config))
        if !apps.apple.isEmpty { add("/.well-known/apple-app-site-association", Self.association(apps.apple)) }
        if !apps.android.isEmpty { add("/.well-known/assetlinks.json", Self.links(apps.android)) }
        files[Self.root] = files[Self.root + Self.page]
        self.files = files
        common = Self.fields(of: origin, connecting: Array(relays.dropFirst()))
    }

    /// Answers a request for a file; nil for any other path.
    public func answer(_ request: Request) -> Response? {
        if request.path == Self.root.dropLast() {
            return Response(status: 308, fields: Fields(common + [.init("location", Self.root)]))
        }
        guard let file = files[request.path] else { return nil }
        guard ["GET", "HEAD"].contains(request.method) else {
            return Response(status: 405, fields: Fields(common + [.init("allow", "GET, HEAD")]))
        }
        // Browsers ask each time, and mostly learn that they have it.
        let tag = "\"\(file.digest)\""
        var fields = Fields(common + [.init("etag", tag), .init("cache-control", "no-cache")])
        let known = request.fields["if-none-match"]?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
        if known.contains(tag) { return Response(status: 304, fields: fields) }
        fields.add("content-type", file.type)
        return Response(status: 200, fields: fields, body: file.body)
    }

    /// The fields of every answer.
    private static func fields(of origin: WebAddress, connecting relays: [String]) -> [Fields.Field] {
        let policy = [
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "manifest-src 'self'",
            "worker-src 'self'", (["connect-src 'self'"] + relays).joined(separator: " "),
            "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
            "trusted-types twoefay-phone",
        ]
        var fields: [Fields.Field] = [
            .init("content-security-policy", policy.joined(separator: "; ")),
            .init("cross-origin-opener-policy", "same-origin"),
            .init("cross-origin-resource-policy", "same-origin"),
            .init("referrer-policy", "no-referrer"),
            .init("x-content-type-options", "nosniff"),
            .init(
                "permissions-policy",
                "camera=(self), clipboard-write=(self), publickey-credentials-create=(self), publickey-credentials-get=(self), "
                    + "geolocation=(self), microphone=(), payment=(), usb=()"),
        ]
        // It holds for all ports of a host, so it would break plain pages at others.
        if origin.port ?? 443 == 443 { fields.append(.init("strict-transport-security", "max-age=31536000")) }
        return fields
    }

    /// The file by which an app for iOS takes over links.
    private static func association(_ apps: [String]) -> JSONValue {
        let details: JSONObject = [
            "appIDs": .array(apps.map { .string($0) }),
            "components": .array([.object(["/": .string(root + "*")])]),
        ]
        return .object(["applinks": .object(["details": .array([.object(details)])])])
    }

    /// The file by which an app for Android takes over links.
    private static func links(_ apps: [AndroidApp]) -> JSONValue {
        .array(
            apps.map { app in
                let digests = app.signatureDigests.map { digest in
                    digest.map { Hex.encode([$0]).uppercased() }.joined(separator: ":")
                }
                return .object([
                    "relation": .array([.string("delegate_permission/common.handle_all_urls")]),
                    "target": .object([
                        "namespace": .string("android_app"), "package_name": .string(app.package),
                        "sha256_cert_fingerprints": .array(digests.map { .string($0) }),
                    ]),
                ])
            })
    }
}
