import JSON
import TestSupport

/// The script Script/tour.py.
enum TourScript {
    static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

    /// - Parameter looksCloser: checks each page with axe-core, in light and dark, and walks the steps that do not
    ///   depend on the store.
    static func walk(_ addresses: JSONObject, pictures: String, looksCloser: Bool) async throws -> Child.Ended {
        var wish = addresses
        wish.set("pictures", .string(pictures))
        wish.set("chromium", ChromiumScript.program("chromium").map { .string($0) } ?? .null)
        wish.set("driver", ChromiumScript.program("chromedriver").map { .string($0) } ?? .null)
        wish.set("axe", looksCloser ? .string(ChromiumScript.axe) : .null)
        return try await ChromiumScript.run(
            "\(root)/Tests/System/TourTests/Script/tour.py", [JSONWriter.text(.object(wish))])
    }
}
