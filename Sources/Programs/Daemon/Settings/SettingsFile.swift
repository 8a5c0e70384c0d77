/// The settings of a program's option `--config`, for all programs.
extension Settings {
    public static let configOption = Command.Option(
        "config", .one("FILE"), "The settings, as `twoefay init` writes them.")

    /// Reads the file that `--config` names.
    public static func load(_ invocation: Invocation) throws(Failure) -> Settings {
        guard let path = invocation.value("config") else {
            throw Failure(
                .usage, "there are no settings: --config FILE is missing",
                next: "Make a new installation with 'twoefay init DIR', then give --config DIR/twoefay.yaml.")
        }
        let bytes: [UInt8]
        do {
            bytes = try Files.read(path)
        } catch {
            throw Failure(
                Files.exists(path) ? .failed : .notFound, "the settings cannot be read: \(error.text)",
                next: "Check the path, or make a new installation with 'twoefay init DIR'.")
        }
        do {
            return try SettingsReader.read(bytes, file: path)
        } catch {
            throw Failure(
                .failed, "the settings are not valid\n\(error.description)",
                next:
                    "docs/operators/settings.md explains every key. Correct the file, then try "
                    + "'twoefayd --config \(path) --check'.")
        }
    }
}
