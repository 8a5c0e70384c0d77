import Glibc
import JSON
import TestSupport

/// The script Script/tour.py and its needs: Debian's Chromium with its driver, and the Python packages that
/// dev/need installs.
enum TourScript {
    static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
    private static let packages = "\(root)/.build/python"
    private static let axe = "\(packages)/axe_playwright_python/axe.min.js"

    static var canRun: Bool {
        program("chromium") != nil && program("chromedriver") != nil && access(axe, R_OK) == 0
            && access("\(packages)/selenium/__init__.py", R_OK) == 0
    }

    /// - Parameter looksCloser: checks each page with axe-core, in light and dark, and walks the steps that do not
    ///   depend on the store.
    static func walk(_ addresses: JSONObject, pictures: String, looksCloser: Bool) async throws -> Child.Ended {
        // A separate home directory, so that the browser's files do not mix with those of the person who runs the
        // tests.
        let home = try TemporaryDirectory()
        var wish = addresses
        wish.set("pictures", .string(pictures))
        wish.set("chromium", program("chromium").map { .string($0) } ?? .null)
        wish.set("driver", program("chromedriver").map { .string($0) } ?? .null)
        wish.set("axe", looksCloser ? .string(axe) : .null)
        let child = try Child(
            "python3", ["\(root)/Tests/System/TourTests/Script/tour.py", JSONWriter.text(.object(wish))],
            environment: [
                "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "HOME": home.path,
                "TMPDIR": home.path, "SE_OFFLINE": "true", "SE_AVOID_STATS": "true",
            ])
        return await child.ended()
    }

    private static func program(_ name: String) -> String? {
        guard let path = getenv("PATH") else { return nil }
        return String(cString: path).split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }
}
