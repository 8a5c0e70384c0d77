import Glibc

/// Scripts in Python that drive a browser, and what they need: Debian's Chromium with its driver, or
/// Debian's Firefox, and the Python packages that `dev/need` installs.
public enum ChromiumScript {
    private static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
    private static let packages = "\(root)/.build/python"
    /// The rules for accessible pages.
    public static let axe = "\(packages)/axe_playwright_python/axe.min.js"

    public static var canRun: Bool {
        program("chromium") != nil && program("chromedriver") != nil && access(axe, R_OK) == 0 && hasSelenium
    }

    /// Whether a script can drive Firefox, which needs no driver.
    public static var canRunFirefox: Bool { program("firefox-esr") != nil && hasSelenium }

    private static var hasSelenium: Bool { access("\(packages)/selenium/__init__.py", R_OK) == 0 }

    /// Runs a script with a home directory of its own, so that the browser's files do not mix with
    /// those of the person who runs the tests.
    public static func run(_ script: String, _ arguments: [String]) async throws -> Child.Ended {
        let home = try TemporaryDirectory()
        let child = try Child(
            "python3", [script] + arguments,
            environment: [
                "PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "HOME": home.path,
                "TMPDIR": home.path, "SE_OFFLINE": "true", "SE_AVOID_STATS": "true",
            ])
        return await child.ended()
    }

    /// The path of a program; nil if it is not installed.
    public static func program(_ name: String) -> String? {
        guard let path = getenv("PATH") else { return nil }
        return String(cString: path).split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }
}
